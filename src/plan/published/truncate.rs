//! Stage 3: the keep set and the first user message, whether that fits or not.

use crate::plan::cache::{CachePlace, Sent};
use crate::plan::hidden::Hidden;
use crate::plan::keep::Landmarks;
use crate::plan::layout::Layout;
use crate::plan::masked::Masking;
use crate::plan::outcome::{Outcome, Plan, Stage};
use crate::plan::planner::Planner;
use crate::plan::replayed::Replayed;
use crate::plan::summarize::earlier_summaries;
use crate::plan::units::blocks_of;
use crate::plan::window::Window;
use crate::stop::check;
use std::collections::BTreeSet;

impl Planner<'_> {
    /// Stage 3: the keep set and the first user message, even if that does not fit.
    pub(super) fn truncate(&self, masking: Masking) -> Outcome {
        let landmarks = Landmarks::of(self.outline, 0..self.end);
        let hidden = Hidden::all_but(self.truncated(&landmarks, &self.window()), self.end);
        Outcome::Plan(Box::new(Plan { stage: Some(Stage::Fallback), ..self.finish(masking, hidden, None) }))
    }

    /// The messages that it keeps.
    fn truncated(&self, landmarks: &Landmarks, window: &Window) -> BTreeSet<usize> {
        let summaries = earlier_summaries(self.outline, self.source, self.end);
        let mut kept = self.keeping(landmarks).keep_set(window.start(self.context())..self.end, |_| true);
        kept.extend(landmarks.said().find(|message| summaries.binary_search(message).is_err()));
        kept.extend(summaries);
        kept
    }

    /// Replays a session of which each request is truncated.
    pub(super) fn replay_truncated(mut self, requests: &[usize], mut replayed: Replayed) -> Replayed {
        let (mut landmarks, mut window) = (Landmarks::default(), Window::default());
        let mut before = Layout::default();
        for end in requests.iter().copied() {
            check();
            self.end = end;
            window.grow(self.context(), end);
            (before.messages..end).for_each(|message| landmarks.push(self.outline, message));
            let hidden = Hidden::all_but(self.truncated(&landmarks, &window), end);
            let layout = Layout { hidden, ..Layout::whole(end) };
            let at = |place: usize| {
                layout.hidden.shown(0..end).take(place).fold(CachePlace::default(), |place, message| CachePlace {
                    chars: place.chars + self.outline.chars_of(message, self.policy.text.image_chars),
                    blocks: place.blocks + blocks_of(self.outline, message),
                })
            };
            let is_said = |one: &usize| !self.outline.messages[*one].is_agent_made;
            let answered = (before.messages..end).find(is_said).unwrap_or(end);
            let [view, earlier, answered] =
                [end, before.messages, answered].map(|message| at(layout.place_of(message)));
            let same = at(layout.first_change(&before, None));
            let dropped = before.hidden.shown(0..end).filter(|message| layout.hidden.has(*message));
            let sent = Sent { view, same, same_blocks: same.blocks, earlier, answered, ..Sent::default() };
            replayed.push(sent, dropped.flat_map(|message| self.outline.results_of(message)));
            before = layout;
        }
        replayed
    }
}
