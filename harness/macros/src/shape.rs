//! What kind of item a derive stands on.

use syn::{Attribute, Data, DeriveInput, Field, Fields, Variant};

use crate::diagnostics::Errors;

/// The fields of a struct with named fields; anything else is a mistake.
pub(crate) fn fields<'a>(
    input: &'a DeriveInput,
    derive: &str,
    errors: &mut Errors,
) -> Option<Vec<&'a Field>> {
    let name = &input.ident;
    let wanted = format!("`derive({derive})` needs a struct with named fields");
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => return Some(fields.named.iter().collect()),
            Fields::Unit => errors.push(
                name,
                format!("{wanted}, and `{name}` has none (write `struct {name} {{}}`)"),
            ),
            Fields::Unnamed(_) => errors.push(
                name,
                format!("{wanted}, and the fields of `{name}` have no names (give them names)"),
            ),
        },
        Data::Enum(_) => errors
            .push(name, format!("{wanted}, and `{name}` is an enum (make it a field of a struct)")),
        Data::Union(_) => errors.push(name, format!("{wanted}, and `{name}` is a union")),
    }
    None
}

/// The variants of an enum that has some; anything else is a mistake.
pub(crate) fn variants<'a>(
    input: &'a DeriveInput,
    derive: &str,
    errors: &mut Errors,
) -> Option<Vec<&'a Variant>> {
    let name = &input.ident;
    match &input.data {
        Data::Enum(data) if data.variants.is_empty() => {
            errors.push(
                name,
                format!("`derive({derive})` needs at least one variant, and `{name}` has none"),
            );
            None
        }
        Data::Enum(data) => Some(data.variants.iter().collect()),
        Data::Struct(_) | Data::Union(_) => {
            errors.push(name, format!("`derive({derive})` needs an enum, and `{name}` is none"));
            None
        }
    }
}

/// Whether the item has no parameters; having some is a mistake.
pub(crate) fn is_plain(input: &DeriveInput, derive: &str, errors: &mut Errors) -> bool {
    let generics = &input.generics;
    if generics.params.is_empty() {
        return true;
    }
    let name = &input.ident;
    errors.push(
        &generics.params,
        format!(
            "`derive({derive})` takes no generics, and `{name}` has some (name concrete types; \
             for a trait object write `Arc<dyn Trait>`)"
        ),
    );
    false
}

/// The doc comments among attributes.
pub(crate) fn docs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("doc")).collect()
}
