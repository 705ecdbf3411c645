//! A bounded cache of pages.

use super::page::Page;
use std::collections::HashMap;
use std::mem;

/// Two generations of pages: when the young one is full it becomes the old one, and old pages not used since are evicted.
pub(crate) struct PageCache {
    most: usize,
    young: HashMap<u32, Page>,
    old: HashMap<u32, Page>,
}

impl PageCache {
    /// An empty cache, with this many pages per generation.
    pub(crate) fn new(most: usize) -> Self {
        PageCache { most, young: HashMap::new(), old: HashMap::new() }
    }

    /// A page, if it is cached.
    pub(crate) fn get(&mut self, number: u32) -> Option<Page> {
        if let Some(page) = self.young.get(&number) {
            return Some(page.clone());
        }
        let page = self.old.remove(&number)?;
        self.put(number, page.clone());
        Some(page)
    }

    /// A page, if it is cached; this does not count as a use.
    pub(crate) fn peek(&self, number: u32) -> Option<Page> {
        self.young.get(&number).or_else(|| self.old.get(&number)).cloned()
    }

    pub(crate) fn put(&mut self, number: u32, page: Page) {
        if self.young.len() >= self.most {
            self.old = mem::take(&mut self.young);
        }
        self.old.remove(&number);
        self.young.insert(number, page);
    }
}
