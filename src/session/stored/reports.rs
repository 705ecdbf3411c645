//! Reports in a store: written into its last snapshot.

use super::snapshot::Snapshot;
use crate::session::{Result, Session};
use crate::store::{RecordKind, Store};

impl Session {
    /// Writes what was reported and is not stored, into the last snapshot.
    pub(in crate::session) fn store_reports(&mut self, store: &mut Store) -> Result<()> {
        if !self.stored.has_unwritten_reports || self.stored.missing > 0 {
            return Ok(());
        }
        let options = &self.stored.options;
        let last = Session::snapshot_of(store)?.filter(|snapshot| snapshot.options == *options);
        let snapshot = Snapshot { reports: self.reports.clone(), ..last.unwrap_or_else(|| self.first_snapshot()) };
        store.change(|changes| {
            if changes.last(RecordKind::Session) == 0 {
                changes.append(RecordKind::Session, &[], &[])?;
            }
            changes.replace(RecordKind::Session, 1, &[], &snapshot.bytes())
        })?;
        self.stored.has_unwritten_reports = false;
        Ok(())
    }

    /// A snapshot without messages: a session that resumes it appends all again.
    pub(in crate::session) fn first_snapshot(&self) -> Snapshot {
        Snapshot {
            options: self.stored.options.clone(),
            stale: self.stored.stale,
            attempts: self.attempts.clone(),
            reports: self.reports.clone(),
            ..Snapshot::default()
        }
    }
}
