//! A program and edits, made from a seed.
use std::fmt;

use harness_esg::{CodeGraph, EsgError};

use crate::dice::Dice;
use crate::grammar::{Bound, step};

#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Replace(String, String),
    Remove(String),
    /// Before the step, or at the end.
    Insert(Option<String>, String, String),
    Move(String, Option<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) steps: Vec<(String, String)>,
    pub(crate) edits: Vec<Edit>,
}

impl Edit {
    /// Applies it, if its steps exist.
    pub(crate) fn apply(&self, graph: &mut CodeGraph) -> Result<(), EsgError> {
        let there = |id: &String| graph.program().step(id).is_ok();
        let before = match self {
            Self::Insert(before, ..) | Self::Move(_, before) => before.clone().filter(there),
            _ => None,
        };
        match self {
            Self::Replace(id, source) if there(id) => {
                // The same source again is refused, as it should be.
                drop(graph.edit(|program| program.replace(id, source)));
                Ok(())
            }
            Self::Remove(id) if there(id) => graph.edit(|program| program.remove(id)),
            Self::Insert(_, id, source) => graph.edit(|program| match &before {
                Some(before) => program.insert_before(before, id, source).map(drop),
                None => program.push(id, source).map(drop),
            }),
            Self::Move(id, _) if there(id) => graph.edit(|program| match &before {
                Some(before) if before != id => program.move_before(id, before),
                Some(_) => Ok(()),
                None => program.move_last(id),
            }),
            _ => Ok(()),
        }
    }
}

/// The source with one of its numbers changed.
fn tweak(source: &str, dice: &mut Dice) -> String {
    let chars: Vec<char> = source.chars().collect();
    let alone = |at: usize| {
        let other = |at: Option<&char>| at.is_none_or(|c| !c.is_alphanumeric() && *c != '_');
        chars[at].is_ascii_digit() && other(chars.get(at + 1)) && other(chars[..at].last())
    };
    let places: Vec<usize> = (0..chars.len()).filter(|&at| alone(at)).collect();
    if places.is_empty() {
        return format!("{source}\nextra = {}", dice.below(7));
    }
    let at = *dice.pick(&places);
    let digit = char::from_digit(u32::try_from(dice.below(7)).unwrap(), 10).unwrap();
    chars.iter().enumerate().map(|(i, &c)| if i == at { digit } else { c }).collect()
}

impl Case {
    /// The case of `seed`, of phrases from `topics`.
    pub(crate) fn new(seed: u64, topics: &[&[&str]]) -> Self {
        let mut dice = Dice::new(seed);
        // A program is about few topics, so that its steps depend on each other.
        let few: Vec<&[&str]> = if dice.percent(70) {
            (0..3 + dice.below(4)).map(|_| *dice.pick(topics)).collect()
        } else {
            topics.to_vec()
        };
        let mut bound = Bound::default();
        let many = 4 + dice.below(7);
        let steps: Vec<_> =
            (0..many).map(|at| (format!("s{at}"), step(&few, &mut dice, &mut bound))).collect();
        let mut now = steps.clone();
        let mut edits = Vec::new();
        for at in 0..2 + dice.below(3) {
            let spot = dice.below(now.len());
            let (id, source) = now[spot].clone();
            let edit = match dice.below(20) {
                0..9 => Edit::Replace(id, tweak(&source, &mut dice)),
                9..13 => Edit::Replace(id, step(&few, &mut dice, &mut bound)),
                13..15 => Edit::Remove(id),
                15..17 => {
                    let new = step(&few, &mut dice, &mut bound);
                    Edit::Insert(dice.percent(80).then_some(id), format!("n{at}"), new)
                }
                17..19 => {
                    let before = now[dice.below(now.len())].0.clone();
                    Edit::Move(id, dice.percent(80).then_some(before))
                }
                // Back to its first source.
                _ => match steps.iter().find(|(one, _)| *one == id) {
                    Some((id, source)) => Edit::Replace(id.clone(), source.clone()),
                    None => Edit::Remove(id),
                },
            };
            follow(&mut now, &edit);
            edits.push(edit);
            if now.is_empty() {
                break;
            }
        }
        Self { seed, steps, edits }
    }
}

/// The steps after the edit, for later choices.
fn follow(now: &mut Vec<(String, String)>, edit: &Edit) {
    match edit {
        Edit::Replace(id, source) => {
            now.iter_mut().filter(|(one, _)| one == id).for_each(|one| one.1.clone_from(source));
        }
        Edit::Remove(id) => now.retain(|(one, _)| one != id),
        Edit::Insert(_, id, source) => now.push((id.clone(), source.clone())),
        Edit::Move(..) => {}
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indent = |source: &str| source.replace('\n', "\n        ");
        writeln!(f, "seed {}", self.seed)?;
        for (id, source) in &self.steps {
            writeln!(f, "    {id}:\n        {}", indent(source))?;
        }
        for edit in &self.edits {
            match edit {
                Edit::Replace(id, source) => {
                    writeln!(f, "  - replace {id}:\n        {}", indent(source))?;
                }
                Edit::Remove(id) => writeln!(f, "  - remove {id}")?,
                Edit::Insert(before, id, source) => {
                    let place = before.as_deref().unwrap_or("the end");
                    writeln!(f, "  - insert {id} before {place}:\n        {}", indent(source))?;
                }
                Edit::Move(id, before) => {
                    writeln!(f, "  - move {id} before {}", before.as_deref().unwrap_or("the end"))?;
                }
            }
        }
        Ok(())
    }
}
