//! The language of the tiny worker.
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{Object, Shared, TinyWorker, get};
use crate::exec::{Ending, Ran, Untracked, Wrote};
use crate::model::Entity;

/// One step while it runs.
pub(super) struct Turn<'a> {
    worker: &'a mut TinyWorker,
    readings: &'a [Json],
    ran: Ran,
    /// The names that the step bound: loads of them read nothing.
    bound: BTreeSet<Arc<str>>,
    line: usize,
}

/// Why a step ends early.
type Stop = Box<Ending>;

impl<'a> Turn<'a> {
    pub(super) fn new(worker: &'a mut TinyWorker, readings: &'a [Json]) -> Self {
        let ran = Ran::ended(Ending::Ok, Duration::ZERO);
        Self { worker, readings, ran, bound: BTreeSet::new(), line: 0 }
    }

    pub(super) fn into_ran(self, ending: Result<(), Stop>) -> Ran {
        let ending = ending.map_or_else(|stop| *stop, |()| Ending::Ok);
        let lost = matches!(ending, Ending::Crashed { .. });
        Ran { lost, ending, ..self.ran }
    }

    pub(super) fn bind_json(&mut self, name: &str, value: &str) -> Result<(), Stop> {
        let object = Object::parse(value.as_bytes());
        let object = object.ok_or_else(|| unsupported("inputs that are not integers or lists"))?;
        self.bind(name, Arc::new(Mutex::new(object)));
        Ok(())
    }

    pub(super) fn run(&mut self, source: &str) -> Result<(), Stop> {
        for (at, line) in source.lines().enumerate() {
            self.line = at + 1;
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                self.statement(line)?;
            }
        }
        Ok(())
    }

    fn statement(&mut self, line: &str) -> Result<(), Stop> {
        match line {
            "crash()" => return Err(Box::new(Ending::Crashed { signal: Some(11), code: None })),
            "while True: pass" => {
                self.worker.killed.wait();
                return Err(Box::new(Ending::Crashed { signal: Some(9), code: None }));
            }
            "untracked()" => {
                let what = "untracked()".to_owned();
                self.ran.untracked.push(Untracked { what, line: Some(self.line) });
                return Ok(());
            }
            _ => {}
        }
        if let Some(kind) = line.strip_prefix("raise ") {
            return Err(self.raised(kind, String::new(), None));
        }
        if let Some(name) = line.strip_prefix("del ") {
            self.load(name)?;
            self.worker.remove(name);
            self.bound.insert(name.into());
            self.ran.wrote.insert(Entity::name(name), Wrote::Deleted);
            return Ok(());
        }
        if let Some(shown) = call(line, "print") {
            let shown = get(&self.term(shown)?).json().to_string().replace(',', ", ");
            self.ran.stdout.bytes.extend(shown.into_bytes());
            self.ran.stdout.bytes.push(b'\n');
            return Ok(());
        }
        if let Some((name, rest)) = line.split_once(".append(")
            && let Some(added) = rest.strip_suffix(')')
        {
            let added = self.int(added)?;
            let list = self.load(name)?;
            return match &mut *list.lock().unwrap_or_else(PoisonError::into_inner) {
                Object::List(items) => {
                    items.push(added);
                    self.changed(&list);
                    Ok(())
                }
                _ => Err(self.raised("AttributeError", "append".to_owned(), None)),
            };
        }
        match line.split_once(" = ") {
            Some((name, value)) if is_name(name) => {
                let value = self.value(value.trim())?;
                self.bind(name, value);
                Ok(())
            }
            _ => Err(unsupported(line)),
        }
    }

    /// The value of the right side of an assignment: a name gives its very object.
    fn value(&mut self, text: &str) -> Result<Shared, Stop> {
        let new = |object| Ok(Arc::new(Mutex::new(object)));
        if let Some(items) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let items = items.split(',').map(str::trim).filter(|item| !item.is_empty());
            let items = items.map(|item| self.int(item)).collect::<Result<_, _>>()?;
            return new(Object::List(items));
        }
        if let Some(list) = call(text, "iter") {
            let mut left = self.list(list)?;
            left.reverse();
            return new(Object::Iter(left));
        }
        if is_name(text) {
            return self.load(text);
        }
        let mut sum = 0_i64;
        for term in text.split('+') {
            sum = sum.wrapping_add(self.int(term.trim())?);
        }
        new(Object::Int(sum))
    }

    fn term(&mut self, text: &str) -> Result<Shared, Stop> {
        if is_name(text) {
            return self.load(text);
        }
        let int = |int: i64| Ok(Arc::new(Mutex::new(Object::Int(int))));
        if let Ok(known) = text.parse() {
            return int(known);
        }
        if let Some(list) = call(text, "len") {
            return int(self.list(list)?.len().try_into().unwrap_or(i64::MAX));
        }
        if let Some(list) = call(text, "sum") {
            return int(self.list(list)?.iter().sum());
        }
        if let Some(name) = call(text, "next") {
            let object = self.load(name)?;
            let next = match &mut *object.lock().unwrap_or_else(PoisonError::into_inner) {
                Object::Iter(left) => left.pop(),
                _ => return Err(self.raised("TypeError", "not an iterator".to_owned(), None)),
            };
            self.changed(&object);
            return next
                .map_or_else(|| Err(self.raised("StopIteration", String::new(), None)), int);
        }
        if text == "now()" {
            self.worker.clock += 1;
            let given = self.readings.get(self.ran.readings.len()).and_then(Json::as_i64);
            let now = given.unwrap_or(self.worker.clock.try_into().unwrap_or(i64::MAX));
            self.ran.clock = true;
            self.ran.readings.push(json!(now));
            return int(now);
        }
        Err(unsupported(text))
    }

    fn int(&mut self, text: &str) -> Result<i64, Stop> {
        match get(&self.term(text)?) {
            Object::Int(int) => Ok(int),
            other => Err(self.raised("TypeError", format!("it is a {}", other.kind()), None)),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<i64>, Stop> {
        match get(&self.load(name)?) {
            Object::List(list) => Ok(list),
            other => Err(self.raised("TypeError", format!("it is a {}", other.kind()), None)),
        }
    }

    fn load(&mut self, name: &str) -> Result<Shared, Stop> {
        if !self.bound.contains(name) {
            self.ran.reads.insert(Entity::name(name));
        }
        let message = || format!("name '{name}' is not defined");
        let found = self.worker.names.get(name).cloned();
        found.ok_or_else(|| self.raised("NameError", message(), Some(name.to_owned())))
    }

    fn bind(&mut self, name: &str, object: Shared) {
        self.worker.names.insert(name.into(), object);
        self.bound.insert(name.into());
        self.ran.wrote.insert(Entity::name(name), Wrote::Bound);
    }

    /// All names of a changed object have changed.
    fn changed(&mut self, object: &Shared) {
        for name in self.worker.names_of(object) {
            self.ran.wrote.entry(Entity::Name(name)).or_insert(Wrote::Mutated);
        }
    }

    fn raised(&self, kind: &str, message: String, name: Option<String>) -> Stop {
        Box::new(Ending::Raised {
            type_name: kind.to_owned(),
            message,
            line: Some(self.line),
            frames: Vec::new(),
            name,
            syntax: false,
        })
    }
}

fn unsupported(what: &str) -> Stop {
    Box::new(Ending::Unsupported { feature: what.to_owned() })
}

/// The argument of a call of `function`.
fn call<'t>(text: &'t str, function: &str) -> Option<&'t str> {
    text.strip_prefix(function)?.strip_prefix('(')?.strip_suffix(')')
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|one| one == '_' || one.is_ascii_alphanumeric())
}
