//! Field names and options as serde sees them.
//!
//! An update is logged under the name of its field, so that name must be the
//! one serde writes. A field must be stored as its type encodes it.

use syn::ext::IdentExt as _;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Ident, LitStr, Token};

use crate::diagnostics::Errors;

/// How `rename_all` renames the fields of a struct.
pub(super) struct Names(Option<String>);

/// Field options that change how serde stores the field.
const RESHAPING: &[&str] = &[
    "flatten",
    "skip",
    "skip_serializing",
    "skip_deserializing",
    "skip_serializing_if",
    "with",
    "serialize_with",
    "deserialize_with",
    "getter",
];

/// Struct options that change how serde stores the struct.
const CONVERTING: &[&str] = &["transparent", "into", "from", "try_from", "remote"];

impl Names {
    pub(super) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        Self(option(attrs, "rename_all", CONVERTING, errors))
    }

    /// The stored name of a field.
    pub(super) fn of(&self, name: &Ident, attrs: &[Attribute], errors: &mut Errors) -> String {
        let own = option(attrs, "rename", RESHAPING, errors);
        let plain = name.unraw().to_string();
        match (own, self.0.as_deref()) {
            (Some(own), _) => own,
            (None, Some("UPPERCASE" | "SCREAMING_SNAKE_CASE")) => plain.to_ascii_uppercase(),
            (None, Some("PascalCase")) => pascal(&plain),
            (None, Some("camelCase")) => {
                let pascal = pascal(&plain);
                let (head, tail) = pascal.split_at(pascal.chars().next().map_or(0, char::len_utf8));
                head.to_ascii_lowercase() + tail
            }
            (None, Some("kebab-case")) => plain.replace('_', "-"),
            (None, Some("SCREAMING-KEBAB-CASE")) => plain.to_ascii_uppercase().replace('_', "-"),
            (None, _) => plain,
        }
    }
}

fn pascal(name: &str) -> String {
    let mut out = String::new();
    let mut upper = true;
    for c in name.chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                out.push(c.to_ascii_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}

/// The value of one serde option. Reports an error for the options in
/// `refused`.
fn option(
    attrs: &[Attribute],
    wanted: &str,
    refused: &[&str],
    errors: &mut Errors,
) -> Option<String> {
    let mut found = None;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        // serde reports the options that it cannot read.
        let _ = attr.parse_nested_meta(|meta| {
            let key = meta.path.require_ident()?.unraw().to_string();
            if key == wanted {
                found = text(&meta)?;
                if found.is_none() {
                    errors.push(
                        &meta.path,
                        format!("a state field must have one stored name (write `{key} = \"..\"`)"),
                    );
                }
                return Ok(());
            }
            if refused.contains(&key.as_str()) {
                errors.push(
                    &meta.path,
                    format!(
                        "`{key}` changes how serde stores the state, but not how its updates are \
                         stored (wrap the field's type in a type with its own `Serialize`; a value \
                         that is not stored belongs in the context)"
                    ),
                );
            }
            ignore(&meta)
        });
    }
    found
}

/// `= "text"`; `None` for `(serialize = "..", deserialize = "..")`.
fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<Option<String>> {
    if meta.input.peek(Token![=]) {
        return Ok(Some(meta.value()?.parse::<LitStr>()?.value()));
    }
    ignore(meta)?;
    Ok(None)
}

fn ignore(meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
    while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
        meta.input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_match_serde() {
        let field = Ident::new("user_name2", proc_macro2::Span::call_site());
        for (rule, stored) in [
            ("lowercase", "user_name2"),
            ("UPPERCASE", "USER_NAME2"),
            ("PascalCase", "UserName2"),
            ("camelCase", "userName2"),
            ("snake_case", "user_name2"),
            ("SCREAMING_SNAKE_CASE", "USER_NAME2"),
            ("kebab-case", "user-name2"),
            ("SCREAMING-KEBAB-CASE", "USER-NAME2"),
        ] {
            let mut errors = Errors::default();
            let names = Names(Some(rule.to_owned()));
            assert_eq!(names.of(&field, &[], &mut errors), stored);
            assert!(errors.is_empty());
        }
    }
}
