//! Reads a whole store and reports its faults. Counts and references in it are untrusted.

use super::error::{Result, StoreErrorKind};
use super::page::{PageKind, ROOM, u32_at};
use super::pager::Pager;
use super::record::{CELL, Cell, KINDS, Part, RecordKind, Reference, decode};
use super::{table, text};

/// The maximum number of reported faults.
const MAX_FAULTS: usize = 1_000;

/// A fault of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFault {
    /// The page, if it is about one.
    pub page: Option<u32>,
    pub what: &'static str,
}

/// The report of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub faults: Vec<StoreFault>,
    /// Whole records of each kind.
    pub records: [u64; KINDS],
    /// Pages of the longest bucket.
    pub longest_chain: usize,
}

/// The use of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Nothing,
    /// Used by the directory, a bucket or the list of free pages.
    Table,
    /// Used by this many texts.
    Texts(u16),
}

struct Check<'a> {
    pager: &'a mut Pager,
    report: Report,
    /// Owners by page of the file.
    uses: Vec<Use>,
    /// Whether a record was found, by kind and id.
    seen: [Vec<u64>; KINDS],
    bucket_bytes: u64,
    /// Bytes of texts in text pages; each is stored once, so the pages are an upper bound.
    text_bytes: u64,
    overflow: u32,
}

pub(crate) fn verify(pager: &mut Pager) -> Result<Report> {
    pager.forget();
    let most = pager.most_pages()?;
    let there = u64::from(pager.header.pages).min(most) as usize;
    let mut check = Check {
        report: Report::default(),
        uses: vec![Use::Nothing; there],
        seen: Default::default(),
        bucket_bytes: 0,
        text_bytes: 0,
        overflow: 0,
        pager,
    };
    if there < check.pager.header.pages as usize {
        check.fault(Some(there as u32), "the file was shortened: it ends before this page");
    }
    check.run()?;
    Ok(check.report)
}

impl Check<'_> {
    fn run(&mut self) -> Result<()> {
        let header = self.pager.header.clone();
        self.mark(0);
        let most_records = self.uses.len() as u64 * (ROOM / CELL) as u64;
        for (kind, last) in header.last.into_iter().enumerate() {
            if last > most_records {
                self.fault(Some(0), "it counts more records than there can be in the file");
            }
            self.seen[kind] = vec![0; (last.min(most_records) / 64 + 1) as usize];
        }
        self.directory(header.directory.0, header.directory.1)?;
        for bucket in 0..header.buckets().min(self.uses.len() as u32) {
            self.bucket(bucket)?;
        }
        for (kind, last) in header.last.into_iter().enumerate() {
            if self.report.records[kind] < last {
                self.fault(None, "a record is missing");
            }
        }
        self.free_list(header.free)?;
        if self.overflow != header.overflow || self.bucket_bytes != header.bucket_bytes {
            self.fault(Some(0), "its number of overflow pages or of bytes in buckets is wrong");
        }
        let texts = self.uses.iter().filter(|used| matches!(used, Use::Texts(_))).count();
        let is_empty_end = header.text.0 != 0 && self.uses.get(header.text.0 as usize) == Some(&Use::Nothing);
        if texts + usize::from(is_empty_end) != header.text.1 as usize {
            self.fault(Some(0), "its number of text pages is wrong");
        }
        for number in 0..self.uses.len() as u32 {
            self.page(number, is_empty_end && number == header.text.0)?;
        }
        Ok(())
    }

    /// Records damage and continues; an error of the operating system ends the verification.
    fn record_damage<T>(&mut self, done: Result<T>) -> Result<Option<T>> {
        match done {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind == StoreErrorKind::Damaged => {
                self.fault(error.page, error.what);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn fault(&mut self, page: Option<u32>, what: &'static str) {
        let fault = StoreFault { page, what };
        if self.report.faults.len() < MAX_FAULTS && !self.report.faults.contains(&fault) {
            self.report.faults.push(fault);
        }
    }

    /// Marks a page as used by the table; false if it is already in use.
    fn mark(&mut self, page: u32) -> bool {
        let Some(used) = self.uses.get_mut(page as usize) else { return false };
        if *used != Use::Nothing {
            self.fault(Some(page), "it is in use twice");
            return false;
        }
        *used = Use::Table;
        true
    }

    fn directory(&mut self, number: u32, height: u32) -> Result<()> {
        let page = self.pager.read(number, &[PageKind::Directory]);
        let Some(page) = self.record_damage(page)? else { return Ok(()) };
        if !self.mark(number) || height <= 1 {
            return Ok(());
        }
        for index in 0..page.count().min(ROOM / 4) {
            self.directory(u32_at(page.content(), 4 * index), height - 1)?;
        }
        Ok(())
    }

    fn bucket(&mut self, bucket: u32) -> Result<()> {
        let chain = table::chain(self.pager, bucket);
        let Some(pages) = self.record_damage(chain)? else { return Ok(()) };
        self.report.longest_chain = self.report.longest_chain.max(pages.len());
        self.overflow += pages.len() as u32 - 1;
        for (number, page) in pages {
            if !self.mark(number) {
                return Ok(());
            }
            let mut bytes = 0;
            for cell in table::cells_of(number, &page) {
                let cell = cell.and_then(|(_, _, cell)| Ok((cell.len(), Cell::of(cell, number)?)));
                let Some((length, cell)) = self.record_damage(cell)? else { break };
                bytes += length;
                self.record(&cell, number, bucket)?;
            }
            if bytes != page.used() {
                self.fault(Some(number), "its number of bytes is not that of its records");
            }
            self.bucket_bytes += bytes as u64;
        }
        Ok(())
    }

    fn record(&mut self, cell: &Cell, page: u32, bucket: u32) -> Result<()> {
        let header = self.pager.header.clone();
        if table::bucket_of(cell.id, header.level, header.split) != bucket {
            self.fault(Some(page), "a record is in the wrong bucket");
        }
        let kind = cell.kind.index();
        if cell.id == 0 || cell.id > header.last[kind] {
            self.fault(Some(page), "a record has an unknown number");
            return Ok(());
        }
        if cell.kind == RecordKind::Turn && cell.id < header.masked_before && cell.holds_last() {
            self.fault(Some(page), "the observation of a masked turn is in its bucket");
        }
        let (word, bit) = ((cell.id / 64) as usize, 1 << (cell.id % 64));
        match self.seen[kind].get_mut(word) {
            Some(seen) if *seen & bit == 0 => *seen |= bit,
            _ => self.fault(Some(page), "a record exists twice"),
        }
        let mut is_whole = true;
        match &cell.fields {
            Part::Here(fields) => {
                if decode(fields).is_none_or(|fields| fields.is_empty() && cell.holds_last()) {
                    self.fault(Some(page), "the fields of a record are malformed");
                    is_whole = false;
                }
            }
            Part::Aside(reference) => is_whole &= self.text(*reference)?,
        }
        if let Some(reference) = cell.last {
            is_whole &= self.text(reference)?;
        }
        self.report.records[kind] += u64::from(is_whole);
        Ok(())
    }

    fn text(&mut self, reference: Reference) -> Result<bool> {
        self.text_bytes += u64::from(reference.length);
        if self.text_bytes > (self.uses.len() * ROOM) as u64 {
            // Reading all of them would take O(records × pages).
            self.fault(None, "its texts are longer than its file");
            return Ok(false);
        }
        let mut sum = crc32fast::Hasher::new();
        let mut twice = None;
        let uses = &mut self.uses;
        let walked = text::walk(self.pager, reference, |_, number, page, part| {
            sum.update(&page.content()[part]);
            match uses.get_mut(number as usize) {
                Some(nothing @ Use::Nothing) => *nothing = Use::Texts(1),
                Some(Use::Texts(count)) => *count = count.saturating_add(1),
                _ => twice = Some(number),
            }
            Ok(())
        });
        let is_walked = self.record_damage(walked)?.is_some();
        if let Some(number) = twice {
            self.fault(Some(number), "it is in use twice");
        }
        let is_whole = is_walked && sum.finalize() == reference.sum;
        if is_walked && !is_whole {
            self.fault(Some(reference.page), "the text that begins in it has a wrong checksum");
        }
        Ok(is_whole)
    }

    fn free_list(&mut self, (first, count): (u32, u32)) -> Result<()> {
        let (mut number, mut counted) = (first, 0);
        while number != 0 {
            let page = self.pager.read(number, &[PageKind::Free]);
            let Some(page) = self.record_damage(page)? else { return Ok(()) };
            if !self.mark(number) {
                return Ok(());
            }
            counted += 1;
            number = page.next();
        }
        if counted != count {
            self.fault(Some(0), "its number of free pages is wrong");
        }
        Ok(())
    }

    /// Whether a page is used as its kind says.
    fn page(&mut self, number: u32, is_empty_end: bool) -> Result<()> {
        let used = self.uses[number as usize];
        if number == 0 || used == Use::Table {
            return Ok(());
        }
        let page = self.pager.any(number);
        let Some(page) = self.record_damage(page)? else { return Ok(()) };
        match used {
            Use::Texts(count) if page.count() != usize::from(count) => {
                self.fault(Some(number), "its number of texts is wrong");
            }
            Use::Nothing if !is_empty_end => self.fault(Some(number), "it is neither in use nor free"),
            _ => {}
        }
        Ok(())
    }
}
