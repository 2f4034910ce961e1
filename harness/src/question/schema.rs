//! Checks a JSON value against the JSON schema of an answer.
//!
//! Answers are sent by processes that do not have the session's types. They can only check an
//! answer against the schema in the log. This module supports the keywords that `schemars` writes
//! and ignores all others. So it accepts some values that do not decode; those fail in the step
//! that reads them.
//!
//! There is no crate for this: the maintained validators need regular expressions, formats,
//! fetching and more than fifty crates, and this library is meant to have fewer than sixty.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::{self, Write as _};

use serde_json::{Map, Number, Value};

use crate::rule::Arguments;
use crate::text::{listed, shown};

/// The greatest depth of nested schemas and values that is checked.
const DEEPEST: usize = 96;
/// The greatest number of comparisons of a schema with a value.
const MOST: u32 = 200_000;

/// The keyword of a schema that lists conditions which a value must not meet. It is not one of JSON
/// schema: a program that does not know it ignores it, and the answer is refused when it is given.
pub(crate) const DENIED: &str = "x-denied";

/// Why `value` does not match `schema`, and where. `None` if it matches, or if checking it takes
/// too long.
pub(crate) fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    let left = Cell::new(MOST);
    let check = Check { root: schema, left: &left };
    check.fits(schema, value, &Path::Root, 0).err().map(|fault| fault.to_string())
}

/// A position in the value.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn depth(&self) -> usize {
        match self {
            Self::Root => 0,
            Self::Key(up, _) | Self::Item(up, _) => up.depth() + 1,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(up, key) => write!(f, "{up}.{}", shown(key)),
            Self::Item(up, item) => write!(f, "{up}[{item}]"),
        }
    }
}

/// What does not match, and where.
struct Fault {
    at: String,
    depth: usize,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.depth {
            0 => f.write_str(&self.what),
            _ => write!(f, "at `{}`: {}", self.at, self.what),
        }
    }
}

fn fault(path: &Path<'_>, what: String) -> Fault {
    let at = path.to_string().trim_start_matches('.').to_owned();
    Fault { at, depth: path.depth(), what }
}

type Fits = Result<(), Fault>;

struct Check<'a> {
    /// The schema that references are resolved in.
    root: &'a Value,
    left: &'a Cell<u32>,
}

impl Check<'_> {
    fn fits(&self, schema: &Value, value: &Value, path: &Path<'_>, depth: usize) -> Fits {
        let left = self.left.get();
        if left == 0 || depth > DEEPEST {
            return Ok(());
        }
        self.left.set(left - 1);
        let fields = match schema {
            Value::Bool(false) => {
                return Err(fault(path, format!("expected no value, found {}", quoted(value))));
            }
            Value::Object(fields) => fields,
            _ => return Ok(()),
        };
        if fields.contains_key("$id") && !std::ptr::eq(schema, self.root) {
            // A schema of its own, with references to itself.
            return Check { root: schema, left: self.left }.fits(schema, value, path, depth);
        }
        let schema = fields;
        not_denied(schema, value, path)?;
        typed(schema, value, path)?;
        one_of_values(schema, value, path)?;
        match value {
            Value::Number(number) => bounded(schema, number, path)?,
            Value::String(text) => long(schema, text, path)?,
            Value::Array(items) => self.items(schema, items, path, depth)?,
            Value::Object(fields) => self.fields(schema, fields, path, depth)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(schema, value, path, depth)
    }

    fn items(
        &self,
        schema: &Map<String, Value>,
        items: &[Value],
        path: &Path<'_>,
        depth: usize,
    ) -> Fits {
        let size = |word: &str| schema.get(word).and_then(Value::as_u64);
        let found = items.len() as u64;
        if let Some(least) = size("minItems").filter(|least| found < *least) {
            return Err(fault(path, format!("expected at least {least} items, found {found}")));
        }
        if let Some(most) = size("maxItems").filter(|most| found > *most) {
            return Err(fault(path, format!("expected at most {most} items, found {found}")));
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::with_capacity(items.len());
            if let Some(again) = items.iter().find(|item| !seen.insert(item.to_string())) {
                return Err(fault(path, format!("{} is listed twice", quoted(again))));
            }
        }
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], |all| all);
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or_else(|| schema.get("items")) {
                self.fits(schema, item, &Path::Item(path, at), depth + 1)?;
            }
        }
        Ok(())
    }

    fn fields(
        &self,
        schema: &Map<String, Value>,
        fields: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) -> Fits {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return Err(fault(path, format!("the field `{}` is missing", shown(name))));
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for (name, value) in fields {
            let at = Path::Key(path, name);
            if let Some(schema) = known.and_then(|known| known.get(name)) {
                self.fits(schema, value, &at, depth + 1)?;
                continue;
            }
            let mut unclear = false;
            let by_pattern = patterns.into_iter().flatten().find(|(pattern, _)| {
                let matched = matches(pattern, name);
                unclear |= matched.is_none();
                matched == Some(true)
            });
            match (by_pattern.map(|(_, schema)| schema), others) {
                (Some(schema), _) => self.fits(schema, value, &at, depth + 1)?,
                (None, Some(_)) if unclear => {}
                (None, Some(Value::Bool(false))) => {
                    return Err(fault(path, format!("the field `{}` is unknown", shown(name))));
                }
                (None, Some(schema)) => self.fits(schema, value, &at, depth + 1)?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// The keywords that combine schemas.
    fn combined(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        path: &Path<'_>,
        depth: usize,
    ) -> Fits {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = self.target(target)
        {
            self.fits(target, value, path, depth + 1)?;
        }
        let several = |word: &str| schema.get(word).and_then(Value::as_array);
        for part in several("allOf").into_iter().flatten() {
            self.fits(part, value, path, depth + 1)?;
        }
        if let Some(parts) = several("anyOf") {
            self.any(parts, value, path, depth)?;
        }
        if let Some(parts) = several("oneOf") {
            let fitting = self.any(parts, value, path, depth)?;
            if fitting > 1 {
                let what = format!(
                    "{} matches {fitting} alternatives, expected exactly one",
                    quoted(value)
                );
                return Err(fault(path, what));
            }
        }
        match schema.get("not") {
            Some(not) if self.fits(not, value, path, depth + 1).is_ok() && self.left.get() > 0 => {
                Err(fault(path, format!("{} is excluded", quoted(value))))
            }
            _ => Ok(()),
        }
    }

    /// The number of matching parts. If none matches, the fault of the closest one.
    fn any(
        &self,
        parts: &[Value],
        value: &Value,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<usize, Fault> {
        let mut fitting = 0;
        let mut faults = Vec::new();
        for part in parts {
            match self.fits(part, value, path, depth + 1) {
                // A part whose check was abandoned does not count as a second match.
                Ok(()) if self.left.get() == 0 => return Ok(1),
                Ok(()) => fitting += 1,
                Err(fault) => faults.push(fault),
            }
        }
        if fitting > 0 || parts.is_empty() {
            return Ok(fitting);
        }
        let here = path.depth();
        let deepest = faults.iter().map(|fault| fault.depth).max().unwrap_or(here);
        if deepest > here
            && let Some(closest) = faults.iter().position(|fault| fault.depth == deepest)
        {
            return Err(faults.swap_remove(closest));
        }
        let mut reasons: Vec<String> = faults.into_iter().map(|fault| fault.what).collect();
        reasons.dedup();
        Err(fault(path, listed(&reasons, "; or ")))
    }

    /// The target of a reference, if it is in this schema.
    fn target(&self, reference: &str) -> Option<&Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer).or_else(|| self.root.pointer(&unescaped(pointer)?))
    }
}

/// Decodes percent escapes.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

fn of_value(conditions: &Value) -> Result<Arguments, serde_json::Error> {
    serde::Deserialize::deserialize(conditions)
}

/// Not limited: what is denied is refused however large the value is.
fn not_denied(schema: &Map<String, Value>, value: &Value, path: &Path<'_>) -> Fits {
    let denied = schema.get(DENIED).and_then(Value::as_array);
    for (at, conditions) in denied.into_iter().flatten().enumerate() {
        let caught = match of_value(conditions) {
            Ok(conditions) => conditions.catch(value),
            // Written by a later version: what it means is not known.
            Err(_) => true,
        };
        if caught {
            let what = format!(
                "rule {} denies these arguments: {}",
                at + 1,
                shown(&conditions.to_string())
            );
            return Err(fault(path, what));
        }
    }
    Ok(())
}

fn typed(schema: &Map<String, Value>, value: &Value, path: &Path<'_>) -> Fits {
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        // `1.0` is an integer in JSON schema, but does not decode as one.
        "integer" => value.is_i64() || value.is_u64(),
        _ => true,
    };
    if names.is_empty() || names.iter().any(is) {
        return Ok(());
    }
    let mut expected = String::new();
    for (at, name) in names.iter().enumerate() {
        let between = if at > 0 { " or " } else { "" };
        let article = match *name {
            "null" => "",
            "array" | "object" | "integer" => "an ",
            _ => "a ",
        };
        // Writing to a string cannot fail.
        let _ = write!(expected, "{between}{article}{}", shown(name));
    }
    Err(fault(path, format!("expected {expected}, found {}", quoted(value))))
}

fn one_of_values(schema: &Map<String, Value>, value: &Value, path: &Path<'_>) -> Fits {
    if let Some(only) = schema.get("const").filter(|only| *only != value) {
        let what = format!("expected {}, found {}", quoted(only), quoted(value));
        return Err(fault(path, what));
    }
    match schema.get("enum").and_then(Value::as_array) {
        Some(values) if !values.contains(value) => {
            let values: Vec<String> = values.iter().map(quoted).collect();
            let what =
                format!("expected one of {}, found {}", listed(&values, ", "), quoted(value));
            Err(fault(path, what))
        }
        _ => Ok(()),
    }
}

fn bounded(schema: &Map<String, Value>, number: &Number, path: &Path<'_>) -> Fits {
    let below = |one: &Number, other: &Number| match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one < other,
        _ => one.as_f64() < other.as_f64(),
    };
    let limit = |word: &str| match schema.get(word) {
        Some(Value::Number(limit)) => Some(limit.clone()),
        _ => None,
    };
    let format = schema.get("format").and_then(Value::as_str).and_then(range);
    let (from, to) = format.map(|(from, to)| (from.into(), to.into())).unzip();
    for least in [limit("minimum"), from].into_iter().flatten() {
        if below(number, &least) {
            return Err(fault(path, format!("expected at least {least}, found {number}")));
        }
    }
    for most in [limit("maximum"), to].into_iter().flatten() {
        if below(&most, number) {
            return Err(fault(path, format!("expected at most {most}, found {number}")));
        }
    }
    if let Some(least) = limit("exclusiveMinimum").filter(|least| !below(least, number)) {
        return Err(fault(path, format!("expected more than {least}, found {number}")));
    }
    if let Some(most) = limit("exclusiveMaximum").filter(|most| !below(number, most)) {
        return Err(fault(path, format!("expected less than {most}, found {number}")));
    }
    Ok(())
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// The range of an integer format. `u64` and wider are limited by `minimum` instead.
fn range(format: &str) -> Option<(i64, i64)> {
    match format {
        "int8" => Some((i8::MIN.into(), i8::MAX.into())),
        "int16" => Some((i16::MIN.into(), i16::MAX.into())),
        "int32" => Some((i32::MIN.into(), i32::MAX.into())),
        "int64" | "int" => Some((i64::MIN, i64::MAX)),
        "uint8" => Some((0, u8::MAX.into())),
        "uint16" => Some((0, u16::MAX.into())),
        "uint32" => Some((0, u32::MAX.into())),
        _ => None,
    }
}

fn long(schema: &Map<String, Value>, text: &str, path: &Path<'_>) -> Fits {
    let size = |word: &str| schema.get(word).and_then(Value::as_u64);
    let (least, most) = (size("minLength"), size("maxLength"));
    if least.is_none() && most.is_none() {
        return Ok(());
    }
    let found = text.chars().count() as u64;
    if let Some(least) = least.filter(|least| found < *least) {
        return Err(fault(path, format!("expected at least {least} characters, found {found}")));
    }
    if let Some(most) = most.filter(|most| found > *most) {
        return Err(fault(path, format!("expected at most {most} characters, found {found}")));
    }
    Ok(())
}

/// Whether a name matches one of the two patterns that `schemars` writes for numeric keys.
fn matches(pattern: &str, name: &str) -> Option<bool> {
    let digits = match pattern {
        r"^\d+$" => name,
        r"^-?\d+$" => name.strip_prefix('-').unwrap_or(name),
        _ => return None,
    };
    Some(!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A value for a message.
fn quoted(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        plain => format!("`{}`", shown(&plain.to_string())),
    }
}

#[cfg(test)]
mod tests;
