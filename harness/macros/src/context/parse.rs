//! Parses the item into a [`Model`].

use quote::format_ident;
use syn::ext::IdentExt as _;
use syn::{DeriveInput, Field, Ident};

use super::model::{Model, Slot, When};
use crate::attr::{Known, Options, Table, Takes};
use crate::diagnostics::Errors;
use crate::shape;

static ON_FIELD: Table = Table {
    attr: "slot",
    place: "a field",
    known: &[
        Known { name: "fixed", example: "fixed", takes: Takes::Nothing },
        Known { name: "required", example: "required", takes: Takes::Nothing },
        Known { name: "runtime", example: "runtime", takes: Takes::Nothing },
    ],
    elsewhere: None,
};

static ON_STRUCT: Table =
    Table { attr: "slot", place: "a struct", known: &[], elsewhere: Some(&ON_FIELD) };

/// Method names of `Cx`, which dereferences to the context, and of the
/// builders.
const RESERVED: &[&str] = &[
    "session_id",
    "run_id",
    "step",
    "attempt",
    "op_id",
    "emit",
    "once",
    "once_per_session",
    "ask",
    "sleep",
    "sleep_until",
    "usage",
    "cancelled",
    "failure",
    "llm",
    "call",
    "call_tools",
    "spawn",
    "scope",
    "position",
    "agent_id",
    "item",
    "build",
    "builder",
];

pub(super) fn parse<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Model<'a>> {
    Options::read(&input.attrs, &ON_STRUCT, errors);
    let plain = shape::is_plain(input, "Context", errors);
    let fields = shape::fields(input, "Context", errors)?;
    let slots = fields.into_iter().filter_map(|field| slot(field, errors)).collect();
    plain.then_some(Model { vis: &input.vis, name: &input.ident, slots })
}

fn slot<'a>(field: &'a Field, errors: &mut Errors) -> Option<Slot<'a>> {
    let name = field.ident.as_ref()?;
    let setter = setter(name, errors);
    Some(Slot {
        name,
        setter,
        ty: &field.ty,
        docs: shape::docs(&field.attrs),
        when: when(name, field, errors),
    })
}

fn when(name: &Ident, field: &Field, errors: &mut Errors) -> When {
    let options = Options::read(&field.attrs, &ON_FIELD, errors);
    let mut given = options.rest().filter_map(|(word, key)| {
        let when = When::ALL.into_iter().find(|when| when.word() == word)?;
        Some((when, key))
    });
    let Some((when, _)) = given.next() else {
        return When::Fixed;
    };
    for (other, key) in given {
        errors.push(
            key,
            format!(
                "slot `{name}` has two times: {} (`{}`) and {} (`{}`) (remove one)",
                when.moment(),
                when.word(),
                other.moment(),
                other.word(),
            ),
        );
    }
    when
}

/// The name of the setter. Every reserved name is an error. A name of a builder
/// method is also replaced, because the two would clash.
fn setter(name: &Ident, errors: &mut Errors) -> Ident {
    let text = name.unraw().to_string();
    if !RESERVED.contains(&text.as_str()) {
        return name.clone();
    }
    let (owner, setter) = match text.as_str() {
        "build" | "builder" => ("the slot builder", format_ident!("my_{text}")),
        _ => ("`Cx`", name.clone()),
    };
    errors.push(
        name,
        format!(
            "slot `{text}` has the name of a method of {owner} (rename it, for \
             example to `my_{text}`)"
        ),
    );
    setter
}
