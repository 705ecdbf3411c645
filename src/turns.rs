//! Outline -> turns. A run is agent-made messages in a row; a turn is a run and the results that answer it.

use crate::outline::Outline;

/// The runs of a history.
#[derive(Debug, Default, Clone)]
pub struct Turns {
    /// First message of each run, ascending.
    pub starts: Vec<u32>,
    /// The end of each run: one past its last message.
    pub ends: Vec<u32>,
}

impl Turns {
    pub fn of(outline: &Outline) -> Self {
        let mut turns = Turns::default();
        for (index, message) in outline.messages.iter().enumerate() {
            turns.push(index, message.is_agent_made);
        }
        turns
    }

    pub(crate) fn push(&mut self, index: usize, is_agent_made: bool) {
        if !is_agent_made {
            return;
        }
        match self.ends.last_mut() {
            Some(end) if *end as usize == index => *end += 1,
            _ => {
                self.starts.push(index as u32);
                self.ends.push(index as u32 + 1);
            }
        }
    }

    /// Keeps only the first messages.
    pub(crate) fn truncate(&mut self, messages: usize) {
        let turns = self.starts.partition_point(|start| (*start as usize) < messages);
        self.starts.truncate(turns);
        self.ends.truncate(turns);
        if let Some(end) = self.ends.last_mut() {
            *end = (*end).min(messages as u32);
        }
    }

    /// How many turns there are.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// The number of a message's turn, from 1: how many runs begin at or before it.
    pub fn at(&self, message: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= message)
    }

    /// The first message of the run that contains a message, or of the last one before it.
    pub(crate) fn start_of(&self, message: usize) -> usize {
        self.at(message).checked_sub(1).map_or(0, |run| self.starts[run] as usize)
    }

    /// The end of the run that contains a message; outside of runs, one past the message.
    pub fn run_end(&self, message: usize) -> usize {
        match self.at(message).checked_sub(1) {
            Some(run) if (self.ends[run] as usize) > message => self.ends[run] as usize,
            _ => message + 1,
        }
    }
}
