//! Parses the item into a [`Model`].

use syn::{DeriveInput, Ident, Path, Type};

use super::model::{Field, Model, Reducer};
use super::{parts, reducer, serde};
use crate::attr::{Known, Options, Table, Takes, Value};
use crate::diagnostics::Errors;
use crate::{shape, text};

static ON_STRUCT: Table = Table {
    attr: "state",
    place: "a struct",
    known: &[
        Known { name: "version", example: "version = 3", takes: Takes::Int },
        Known { name: "migrate", example: "migrate = from_v2", takes: Takes::Paths },
    ],
    elsewhere: Some(&ON_FIELD),
};

static ON_FIELD: Table = Table {
    attr: "state",
    place: "a field",
    known: &[
        Known { name: "reduce", example: "reduce = append", takes: Takes::Reducer },
        Known { name: "update", example: "update = Change", takes: Takes::Type },
        Known { name: "nest", example: "nest", takes: Takes::Nothing },
        Known { name: "provides", example: "provides", takes: Takes::Nothing },
        Known { name: "esg", example: "esg", takes: Takes::Nothing },
    ],
    elsewhere: Some(&ON_STRUCT),
};

pub(super) fn parse<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Model<'a>> {
    let mut options = Options::read(&input.attrs, &ON_STRUCT, errors);
    let version = version(&mut options, errors);
    let migrate = migrations(&mut options, version, errors);
    let names = serde::Names::read(&input.attrs, errors);
    let plain = shape::is_plain(input, "State", errors);
    let fields = shape::fields(input, "State", errors);
    let mut fields: Vec<_> = fields
        .unwrap_or_default()
        .into_iter()
        .filter_map(|field| parse_field(field, &names, errors))
        .collect();
    refuse_second_providers(&input.ident, &mut fields, errors);
    plain.then_some(Model {
        vis: &input.vis,
        name: &input.ident,
        version: version.unwrap_or(1),
        migrate,
        fields,
    })
}

/// The functions that read older versions, newest version first.
fn migrations(options: &mut Options, version: Option<u32>, errors: &mut Errors) -> Vec<Path> {
    let mut paths = Vec::new();
    while let Some((key, value)) = options.take("migrate") {
        let Value::Path(path) = value else { continue };
        match version {
            None => errors.push(
                key,
                "`migrate` reads the version before this one, but no version is set (add \
                 `version = 2`)",
            ),
            Some(version) if paths.len() as u64 + 1 >= u64::from(version) => errors.push(
                key,
                format!(
                    "no version for this `migrate` to read: version {version} has {} before it \
                     (remove it)",
                    version - 1
                ),
            ),
            Some(_) => {}
        }
        paths.push(path);
    }
    paths
}

fn version(options: &mut Options, errors: &mut Errors) -> Option<u32> {
    let Some((_, Value::Int(literal))) = options.take("version") else {
        return None;
    };
    let version = literal.base10_parse().ok().filter(|version| *version > 0);
    if version.is_none() {
        errors.push(&literal, format!("a version must be a number from 1 to {}", u32::MAX));
    }
    Some(version.unwrap_or(1))
}

fn parse_field<'a>(
    field: &'a syn::Field,
    names: &serde::Names,
    errors: &mut Errors,
) -> Option<Field<'a>> {
    let name = field.ident.as_ref()?;
    let mut options = Options::read(&field.attrs, &ON_FIELD, errors);
    let esg = options.span("esg");
    // What is wrong beside `esg` is for the reducer to say.
    let provides = match esg {
        Some(span) => Some(span),
        None => options.take("provides").map(|(key, _)| key.span()),
    };
    let (mut reducer, span) = reducer::choose(name, options, errors);
    refuse_nested_options(name, &field.ty, errors);
    if matches!(reducer, Reducer::Nest) && parts::is_standard(&field.ty) {
        errors.push(
            &field.ty,
            format!(
                "`{name}` cannot be nested: `{}` is not a state (a struct with \
                 `#[derive(State, Clone, Default, Serialize, Deserialize)]` is one)",
                text::type_name(&field.ty)
            ),
        );
        reducer = Reducer::Replace;
    }
    Some(Field {
        name,
        stored: names.of(name, &field.attrs, errors),
        ty: &field.ty,
        docs: shape::docs(&field.attrs),
        reducer,
        span,
        provides,
    })
}

/// JSON has one `null`, so `Some(None)` would read back as `None`. Where an alias or a nested type
/// hides one, the commit that holds the value is refused.
fn refuse_nested_options(field: &Ident, ty: &Type, errors: &mut Errors) {
    let Type::Path(path) = ty else { return };
    for segment in &path.path.segments {
        for held in text::arguments(segment) {
            let twice = segment.ident == "Option"
                && matches!(held, Type::Path(held)
                    if held.path.segments.last().is_some_and(|last| last.ident == "Option"));
            if twice {
                errors.push(
                    ty,
                    format!(
                        "`{field}` cannot store `Some(None)`: JSON has one `null`, and it reads \
                         back as `None` (use an enum with a variant for each case)"
                    ),
                );
                return;
            }
            refuse_nested_options(field, held, errors);
        }
    }
}

/// Reports a type that two fields provide. Two spellings of one type are left
/// to the compiler, which reports the same place.
fn refuse_second_providers(state: &Ident, fields: &mut [Field<'_>], errors: &mut Errors) {
    let mut provided: Vec<(String, &Ident)> = Vec::new();
    for field in fields {
        let Some(span) = field.provides else { continue };
        let ty = text::type_name(&text::without_self(field.ty, state));
        match provided.iter().find(|(known, _)| *known == ty) {
            None => provided.push((ty, field.name)),
            Some((_, first)) => {
                errors.absorb(syn::Error::new(
                    span,
                    format!(
                        "`{state}` provides `{ty}` twice, in `{first}` and `{}` (remove one \
                         `provides`, or wrap one field in its own type)",
                        field.name
                    ),
                ));
                field.provides = None;
            }
        }
    }
}
