//! Outlines built by hand, without JSON: what a planner sees, and the text behind it.

use crate::common::Random;
use recede::dispatch::BEGIN_DISPATCH;
use recede::outline::{Call, ItemType, Message, Outline, Role, Shape, Span, TextSpan, ToolResult};
use recede::source::Source;

/// What a message holds.
#[derive(Clone)]
pub enum Item<'a> {
    Text(&'a str),
    Images(u32),
    Call(Option<&'a str>, Option<&'a str>),
    Result(Option<&'a str>, &'a str),
    ErrorResult(Option<&'a str>, &'a str),
    ImageResult(Option<&'a str>, &'a str, u32),
    Tag(&'a str),
    Reasoning,
}

/// A history of facts, and its texts.
#[derive(Default)]
pub struct Sketch {
    pub outline: Outline,
    pub observations: Vec<String>,
    /// Of each message, the pieces of its text, observations included.
    pieces: Vec<Vec<String>>,
    tags: Vec<Vec<String>>,
}

impl Sketch {
    pub fn new(messages: &[(Role, Shape, &[Item])]) -> Self {
        let mut sketch = Sketch::default();
        for (role, shape, items) in messages {
            sketch.push(*role, *shape, items);
        }
        sketch
    }

    pub fn push(&mut self, role: Role, shape: Shape, items: &[Item]) {
        let outline = &mut self.outline;
        let index = outline.messages.len() as u32;
        let is_reasoning = items.iter().any(|item| matches!(item, Item::Reasoning));
        let mut message = Message {
            first_call: outline.calls.len() as u32,
            first_result: outline.results.len() as u32,
            role,
            shape,
            is_agent_made: role == Role::Assistant || is_reasoning,
            item: if is_reasoning { ItemType::Reasoning } else { ItemType::Other },
            ..Message::default()
        };
        let (mut pieces, mut tags) = (vec![], vec![]);
        for item in items {
            let block = message.blocks;
            message.blocks += 1;
            match *item {
                Item::Text(text) => {
                    message.chars += text.chars().count();
                    pieces.push(text.to_owned());
                }
                Item::Images(count) => message.images += count,
                Item::Tag(tag) => tags.push(tag.to_owned()),
                Item::Reasoning => {}
                Item::Call(id, name) => {
                    let id = id.map(|id| keep(outline, id));
                    let chars = name.map_or(0, |name| name.chars().count());
                    let name = name.map(|name| outline.intern(name.as_bytes()));
                    message.chars += chars + 20;
                    outline.calls.push(Call { id, name, message: index, block });
                }
                Item::Result(id, text) | Item::ErrorResult(id, text) | Item::ImageResult(id, text, _) => {
                    let id = id.map(|id| keep(outline, id));
                    let images = if let Item::ImageResult(_, _, images) = item { *images } else { 0 };
                    let chars = text.chars().count();
                    message.chars += chars;
                    message.images += images;
                    outline.results.push(ToolResult {
                        name: None,
                        id,
                        value: Span::default(),
                        chars,
                        newlines: text.matches('\n').count() as u32,
                        message: index,
                        block,
                        images,
                        first_piece: 0,
                        pieces: 0,
                        is_error: matches!(item, Item::ErrorResult(..)),
                        is_pinned: false,
                        frame: recede::shape::Frame::Text,
                        may_hold_dispatch: true,
                        first_byte: text.bytes().next().unwrap_or(0),
                    });
                    pieces.push(text.to_owned());
                    self.observations.push(text.to_owned());
                }
            }
        }
        self.outline.messages.push(message);
        self.pieces.push(pieces);
        self.tags.push(tags);
    }

    /// All text of a message.
    pub fn text(&self, message: usize) -> String {
        self.pieces[message].concat()
    }

    /// A small history with wounds of every kind.
    pub fn random(random: &mut Random) -> Self {
        const IDS: [Option<&str>; 5] = [Some("a"), Some("b"), Some("c"), Some("é"), None];
        const NAMES: [Option<&str>; 5] = [Some("bash"), Some("read"), Some("read_file"), Some(""), None];
        let mut sketch = Sketch::default();
        if random.once_in(2) {
            let text = *random.pick(&["rules", "Conversation summary:\nold", "Conversation summary:"]);
            sketch.push(Role::System, Shape::Plain, &[Item::Text(text)]);
        }
        let ids = 1 + random.below(IDS.len());
        for _ in 0..random.below(14) {
            let texts: Vec<String> = (0..4).map(|_| observation(random)).collect();
            let id = |random: &mut Random| if random.once_in(20) { None } else { IDS[random.below(ids)] };
            let call = |random: &mut Random| Item::Call(id(random), *random.pick(&NAMES));
            let result = |random: &mut Random, place: usize| match random.below(8) {
                0 => Item::ErrorResult(id(random), &texts[place]),
                1 => Item::ImageResult(id(random), &texts[place], 1 + random.below(2) as u32),
                _ => Item::Result(id(random), &texts[place]),
            };
            let (role, shape, items) = match random.below(12) {
                0 => (Role::System, Shape::Plain, vec![Item::Text("a rule")]),
                1 => {
                    (Role::User, Shape::Plain, vec![Item::Text("what the user wants, in some words"), Item::Images(1)])
                }
                2 => (Role::Other, Shape::Responses, vec![Item::Reasoning]),
                3 => (Role::Assistant, Shape::Plain, vec![Item::Text("thinking aloud")]),
                4..=6 => {
                    let calls = (0..=random.below(3)).map(|_| call(random)).collect();
                    (Role::Assistant, Shape::OpenAi, calls)
                }
                7..=9 => (Role::Other, Shape::OpenAi, vec![result(random, 0)]),
                // Blocks in any order, calls among them.
                _ => {
                    let mut items: Vec<Item> = (0..=random.below(3)).map(|place| result(random, place)).collect();
                    if random.once_in(4) {
                        items.insert(random.below(items.len() + 1), Item::Text("between"));
                    }
                    if random.once_in(4) {
                        items.insert(random.below(items.len() + 1), call(random));
                    }
                    (if random.once_in(6) { Role::Assistant } else { Role::User }, Shape::Anthropic, items)
                }
            };
            sketch.push(role, shape, &items);
        }
        sketch
    }
}

fn keep(outline: &mut Outline, text: &str) -> TextSpan {
    outline.keep_text(|out| out.extend_from_slice(text.as_bytes()))
}

fn observation(random: &mut Random) -> String {
    match random.below(8) {
        0 => String::new(),
        1 => "[observation masked — 77 chars]".to_owned(),
        2 => format!("{}BEGIN_DISPATCH_RESULT x END_DISPATCH_RESULT", "é".repeat(random.below(60))),
        _ => "line é\n".repeat(random.below(20)),
    }
}

impl Source for Sketch {
    fn observation(&self, _: &Outline, result: usize) -> Vec<u8> {
        self.observations[result].clone().into_bytes()
    }

    fn observation_begins(&self, _: &Outline, result: usize, prefix: &[u8]) -> bool {
        self.observations[result].as_bytes().starts_with(prefix)
    }

    fn observation_may_hold_dispatch(&self, _: &Outline, result: usize) -> bool {
        self.observations[result].contains(BEGIN_DISPATCH)
    }

    fn pieces(&self, _: &Outline, message: usize) -> Vec<Vec<u8>> {
        self.pieces[message].iter().map(|text| text.clone().into_bytes()).collect()
    }

    fn has_tag(&self, _: &Outline, message: usize, tag: &str) -> bool {
        self.tags[message].iter().any(|found| found == tag)
    }
}
