//! Checks the kind of item that a derive is applied to.

use syn::{Attribute, Data, DeriveInput, Field, Fields, Variant};

use crate::diagnostics::Errors;

/// The fields of a struct with named fields. Reports an error for any other
/// item.
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
                format!("{wanted}, but `{name}` has none (write `struct {name} {{}}`)"),
            ),
            Fields::Unnamed(_) => errors.push(
                name,
                format!("{wanted}, but the fields of `{name}` have no names (name them)"),
            ),
        },
        Data::Enum(_) => {
            errors.push(name, format!("{wanted}, but `{name}` is an enum (wrap it in a struct)"))
        }
        Data::Union(_) => errors.push(name, format!("{wanted}, but `{name}` is a union")),
    }
    None
}

/// The variants of an enum that has at least one. Reports an error for any
/// other item.
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
                format!("`derive({derive})` needs at least one variant, but `{name}` has none"),
            );
            None
        }
        Data::Enum(data) => Some(data.variants.iter().collect()),
        Data::Struct(_) | Data::Union(_) => {
            errors.push(
                name,
                format!("`derive({derive})` needs an enum, but `{name}` is not an enum"),
            );
            None
        }
    }
}

/// Whether the item has no generics. Reports an error if it has any.
pub(crate) fn is_plain(input: &DeriveInput, derive: &str, errors: &mut Errors) -> bool {
    let generics = &input.generics;
    if generics.params.is_empty() {
        return true;
    }
    let name = &input.ident;
    errors.push(
        &generics.params,
        format!(
            "`derive({derive})` takes no generics, but `{name}` has some (use concrete types; \
             for a trait object write `Arc<dyn Trait>`)"
        ),
    );
    false
}

/// The doc comments among the attributes.
pub(crate) fn docs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("doc")).collect()
}
