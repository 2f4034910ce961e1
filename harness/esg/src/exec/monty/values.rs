//! Values as the host sees them: their fingerprints, and what can be stored of them.
use std::collections::HashMap;
use std::sync::Arc;

use monty_types::{MontyObject, MontyType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value as Json};

use super::session::OTHER;
use crate::model::Fingerprint;

/// A function at the top level of a step that holds nothing but its code: it has no decorator, and no value
/// of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Function {
    /// The step that defines it.
    pub(super) step: Arc<str>,
    /// Its text, at the line it has in the step.
    pub(super) text: Arc<str>,
    /// The identity of its code.
    pub(super) syntax: [u8; 32],
    /// The global names that it loads.
    pub(super) loads: Vec<Arc<str>>,
}

/// What a name is bound to.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The value, as far as it can be taken out of the interpreter.
    pub(super) object: MontyObject,
    /// The mutable objects that it reaches, in order, by their identity.
    pub(super) parts: Vec<Arc<str>>,
    /// The function, if it is one that holds nothing.
    pub(super) function: Option<Function>,
}

/// How far a value can be known and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Data, a function that holds nothing, or a module.
    Plain,
    /// It never changes, and what it is cannot be seen.
    Opaque,
    /// It may hold a state that cannot be seen, and each use may change it.
    Hidden,
}

impl Held {
    pub(super) fn kind(&self) -> Kind {
        match self.function {
            Some(_) => Kind::Plain,
            None if self.parts.iter().any(|part| **part == *OTHER) => Kind::Hidden,
            None => kind(&self.object),
        }
    }

    /// The name of the module that this is.
    fn module(&self) -> Option<&str> {
        module(&self.object)
    }

    /// Where each object is reached first.
    fn places(&self) -> HashMap<&str, usize> {
        let mut places = HashMap::new();
        for (at, part) in self.parts.iter().enumerate() {
            places.entry(&**part).or_insert(at);
        }
        places
    }

    /// Whether an object is reached twice.
    pub(super) fn repeats(&self) -> bool {
        self.places().len() < self.parts.len()
    }

    /// Of its content, and of which parts of it are the same object.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        if let Some(function) = &self.function {
            return Fingerprint::of(&[b"function", &function.syntax]);
        }
        let mut bytes = Vec::new();
        encode(&self.object, &mut bytes);
        if !self.repeats() {
            return Fingerprint::of(&[b"value", &bytes]);
        }
        let places = self.places();
        let pattern: Vec<_> = self.parts.iter().map(|part| places.get(&**part)).collect();
        Fingerprint::of(&[b"value", &bytes, format!("{pattern:?}").as_bytes()])
    }

    /// Which parts two values have in common, if any.
    pub(super) fn common(&self, other: &Self) -> Option<Fingerprint> {
        let places = other.places();
        let parts = self.parts.iter().enumerate();
        let shared: Vec<_> =
            parts.filter_map(|(at, part)| Some((at, places.get(&**part)?))).collect();
        (!shared.is_empty()).then(|| Fingerprint::of(&[b"share", format!("{shared:?}").as_bytes()]))
    }

    /// The form in which it is stored.
    pub(super) fn form(&self) -> Option<Form> {
        if let Some(function) = &self.function {
            return Some(Form::Function(function.clone()));
        }
        if let Some(module) = self.module() {
            return Some(Form::Module(module.to_owned()));
        }
        if self.kind() != Kind::Plain || self.repeats() {
            return None;
        }
        Some(Form::Value(self.object.clone()))
    }
}

/// A stored value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    Value(MontyObject),
    Function(Function),
    Module(String),
}

impl Form {
    /// Its bytes, if they give the same value back.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let bytes = serde_json::to_vec(self).ok()?;
        let Self::Value(object) = self else { return Some(bytes) };
        let Ok(Self::Value(again)) = serde_json::from_slice(&bytes) else { return None };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        encode(object, &mut left);
        encode(&again, &mut right);
        (left == right).then_some(bytes)
    }
}

fn module(object: &MontyObject) -> Option<&str> {
    let MontyObject::Repr(text) = object else { return None };
    let name = text.strip_prefix("<module '")?.split('\'').next()?;
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|one| one == '_' || one.is_ascii_alphanumeric())
    };
    name.split('.').all(is_name).then_some(name)
}

fn kind(object: &MontyObject) -> Kind {
    let worst = |objects: &[MontyObject]| objects.iter().map(kind).max().unwrap_or(Kind::Plain);
    match object {
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::Set(items)
        | MontyObject::FrozenSet(items)
        | MontyObject::NamedTuple { values: items, .. } => worst(items),
        MontyObject::Dict(pairs) => {
            pairs.iter().map(|(key, value)| kind(key).max(kind(value))).max().unwrap_or(Kind::Plain)
        }
        MontyObject::Type(MontyType::Instance(_))
        | MontyObject::ClassInstance(_)
        | MontyObject::FileHandle(_) => Kind::Hidden,
        MontyObject::Repr(text) => match module(object) {
            Some(_) => Kind::Plain,
            None if text.starts_with("<built-in function") => Kind::Opaque,
            None => Kind::Hidden,
        },
        MontyObject::Exception { .. } | MontyObject::Function { .. } => Kind::Opaque,
        _ => Kind::Plain,
    }
}

/// Writes what distinguishes one value from another.
fn encode(object: &MontyObject, out: &mut Vec<u8>) {
    fn tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    fn all(out: &mut Vec<u8>, tag: u8, items: &[MontyObject]) {
        out.push(tag);
        out.extend_from_slice(&(items.len() as u64).to_le_bytes());
        items.iter().for_each(|item| encode(item, out));
    }
    /// A set has no order.
    fn unordered(out: &mut Vec<u8>, tag: u8, items: &[MontyObject]) {
        let encoded = |item: &MontyObject| {
            let mut bytes = Vec::new();
            encode(item, &mut bytes);
            bytes
        };
        let mut items: Vec<_> = items.iter().map(encoded).collect();
        items.sort();
        tagged(out, tag, &items.concat());
    }
    match object {
        MontyObject::Bool(value) => out.extend_from_slice(&[b'b', u8::from(*value)]),
        MontyObject::Int(value) => tagged(out, b'i', value.to_string().as_bytes()),
        MontyObject::BigInt(value) => tagged(out, b'i', value.to_string().as_bytes()),
        MontyObject::Float(value) => tagged(out, b'f', &value.to_bits().to_le_bytes()),
        MontyObject::String(text) => tagged(out, b's', text.as_bytes()),
        MontyObject::Bytes(bytes) => tagged(out, b'y', bytes),
        MontyObject::List(items) => all(out, b'l', items),
        MontyObject::Tuple(items) => all(out, b't', items),
        MontyObject::Set(items) => unordered(out, b'e', items),
        MontyObject::FrozenSet(items) => unordered(out, b'z', items),
        MontyObject::Dict(pairs) => {
            out.push(b'd');
            out.extend_from_slice(&(pairs.len() as u64).to_le_bytes());
            for (key, value) in pairs.iter() {
                encode(key, out);
                encode(value, out);
            }
        }
        MontyObject::NamedTuple { type_name, field_names, values } => {
            tagged(out, b'n', format!("{type_name} {field_names:?}").as_bytes());
            all(out, b't', values);
        }
        // The identities of an instance and its class are random.
        MontyObject::ClassInstance(instance) => {
            tagged(out, b'o', instance.class_type.name.as_bytes());
            for (name, value) in instance.attrs.iter() {
                encode(name, out);
                encode(value, out);
            }
        }
        MontyObject::Type(MontyType::Instance(class)) => tagged(out, b'c', class.name.as_bytes()),
        MontyObject::Cycle(_, shown) => tagged(out, b'r', shown.as_bytes()),
        // An address is in it.
        MontyObject::Repr(text) => {
            tagged(out, b'p', text.split(" at 0x").next().unwrap_or_default().as_bytes());
        }
        other => tagged(out, b'x', format!("{other:?}").as_bytes()),
    }
}

/// The value as JSON, if it is plain data.
pub(super) fn to_json(object: &MontyObject) -> Option<Json> {
    let each = |items: &[MontyObject]| items.iter().map(to_json).collect::<Option<_>>();
    Some(match object {
        MontyObject::None => Json::Null,
        MontyObject::Bool(value) => Json::Bool(*value),
        MontyObject::Int(value) => Json::Number((*value).into()),
        MontyObject::Float(value) => Json::Number(Number::from_f64(*value)?),
        MontyObject::String(text) => Json::String(text.clone()),
        MontyObject::List(items) => Json::Array(each(items)?),
        MontyObject::Dict(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs.iter() {
                let MontyObject::String(key) = key else { return None };
                map.insert(key.clone(), to_json(value)?);
            }
            Json::Object(map)
        }
        _ => return None,
    })
}

/// A value of JSON.
pub(super) fn from_json(json: &Json) -> Option<MontyObject> {
    Some(match json {
        Json::Null => MontyObject::None,
        Json::Bool(value) => MontyObject::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => MontyObject::Int(value),
            None if number.is_f64() => MontyObject::Float(number.as_f64()?),
            None => return None,
        },
        Json::String(text) => MontyObject::String(text.clone()),
        Json::Array(items) => {
            MontyObject::List(items.iter().map(from_json).collect::<Option<_>>()?)
        }
        Json::Object(map) => {
            let pair = |(key, value): (&String, &Json)| {
                Some((MontyObject::String(key.clone()), from_json(value)?))
            };
            MontyObject::dict(map.iter().map(pair).collect::<Option<Vec<_>>>()?)
        }
    })
}
