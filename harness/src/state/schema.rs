//! The fields of a state as data.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of a state and its fields, in the order of their declaration.
///
/// ```
/// use harness::state::Schema;
///
/// let schema = Schema::new(2).field("turns", "u32", "add");
/// assert_eq!(schema.version(), 2);
/// assert_eq!(schema.fields()[0].reducer(), "add");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    version: u32,
    fields: Vec<Field>,
}

/// A field of a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    name: Cow<'static, str>,
    #[serde(rename = "type")]
    type_name: Cow<'static, str>,
    reducer: Cow<'static, str>,
    /// The fields of a nested state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
}

impl Schema {
    /// A schema without fields.
    #[must_use]
    pub fn new(version: u32) -> Self {
        Self { version, fields: Vec::new() }
    }

    /// Adds a field: its stored name, its type as written, and its reducer.
    #[must_use]
    pub fn field(
        mut self,
        name: &'static str,
        type_name: &'static str,
        reducer: &'static str,
    ) -> Self {
        self.fields.push(Field {
            name: name.into(),
            type_name: type_name.into(),
            reducer: reducer.into(),
            fields: Vec::new(),
        });
        self
    }

    /// Adds a field that is a state itself: its stored name, its type as written, and its schema.
    #[must_use]
    pub fn nest(mut self, name: &'static str, type_name: &'static str, inner: Schema) -> Self {
        self.fields.push(Field {
            name: name.into(),
            type_name: type_name.into(),
            reducer: "nest".into(),
            fields: inner.fields,
        });
        self
    }

    /// The version of the stored form.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The fields, in the order of their declaration.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The first field in which two encoded states differ.
    ///
    /// Members of a field with reducer `union` may come in any order.
    ///
    /// ```
    /// use harness::state::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::new(1)
    ///     .field("tags", "HashSet<String>", "union")
    ///     .field("turns", "u32", "add");
    /// let one = json!({"tags": ["a", "b"], "turns": 1});
    /// let two = json!({"tags": ["b", "a"], "turns": 2});
    /// assert_eq!(schema.difference(&one, &one), None);
    /// assert_eq!(schema.difference(&one, &two), Some("turns"));
    /// ```
    #[must_use]
    pub fn difference<'a>(&'a self, one: &'a Value, other: &'a Value) -> Option<&'a str> {
        difference(&self.fields, one, other)
    }
}

fn difference<'a>(fields: &'a [Field], one: &'a Value, other: &'a Value) -> Option<&'a str> {
    let known = fields.iter().find(|field| {
        let (one, other) = (one.get(&*field.name), other.get(&*field.name));
        one != other && field.differs(one, other)
    });
    let keys = |value: &'a Value| value.as_object().into_iter().flat_map(|map| map.keys());
    known.map(Field::name).or_else(|| {
        keys(one)
            .chain(keys(other))
            .find(|key| {
                !fields.iter().any(|field| field.name == **key) && one.get(key) != other.get(key)
            })
            .map(String::as_str)
    })
}

fn same_members(one: Option<&Value>, other: Option<&Value>) -> bool {
    let sorted = |value: Option<&Value>| {
        let mut texts: Vec<String> = value?.as_array()?.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        Some(texts)
    };
    sorted(one).is_some_and(|one| Some(one) == sorted(other))
}

impl Field {
    /// Whether two values that are not equal differ in more than the order of a set.
    fn differs(&self, one: Option<&Value>, other: Option<&Value>) -> bool {
        match (one, other) {
            (Some(one @ Value::Object(_)), Some(other @ Value::Object(_)))
                if !self.fields.is_empty() =>
            {
                difference(&self.fields, one, other).is_some()
            }
            _ => !(self.reducer == "union" && same_members(one, other)),
        }
    }

    /// The fields of a nested state; none of any other field.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The stored name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type, as written in the struct.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The reducer of the field: `replace`, `append`, .. or a path.
    #[must_use]
    pub fn reducer(&self) -> &str {
        &self.reducer
    }
}
