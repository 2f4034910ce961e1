//! `#[derive(Question)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::ext::IdentExt as _;
use syn::{DeriveInput, Ident};

use crate::attr::{Known, Options, Table, Takes, Value};
use crate::diagnostics::Errors;
use crate::{shape, text};

static ON_TYPE: Table = Table {
    attr: "question",
    place: "a type",
    known: &[
        Known { name: "answer", example: "answer = Decision", takes: Takes::Type },
        Known { name: "name", example: "name = \"approve\"", takes: Takes::Str },
    ],
    elsewhere: None,
};

/// A question, its stored name and the type of its answer.
struct Model<'a> {
    name: &'a Ident,
    stored: String,
    answer: TokenStream,
}

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let code = parse(input, &mut errors).map(|model| emit(&model));
    errors.with(code.unwrap_or_default())
}

fn parse<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Model<'a>> {
    let name = &input.ident;
    let mut before = Errors::default();
    let mut options = Options::read(&input.attrs, &ON_TYPE, &mut before);
    let faultless = before.is_empty();
    errors.take(before);
    let plain = shape::is_plain(input, "Question", errors);
    let answer = match options.take("answer") {
        Some((_, Value::Type(answer))) => answer.into_token_stream(),
        _ => {
            if faultless {
                errors.push(
                    name,
                    format!(
                        "question `{name}` has no answer type (write \
                         `#[question(answer = Decision)]` with the type of its answer)"
                    ),
                );
            }
            quote!(())
        }
    };
    let stored = match options.take("name") {
        Some((_, Value::Str(stored))) => {
            if stored.value().is_empty() {
                errors.push(
                    &stored,
                    format!(
                        "question `{name}` has an empty stored name (remove `name` to use the \
                         type's name)"
                    ),
                );
            }
            stored.value()
        }
        _ => text::snake_case(&name.unraw().to_string()),
    };
    plain.then_some(Model { name, stored, answer })
}

fn emit(model: &Model<'_>) -> TokenStream {
    let Model { name, stored, answer } = model;
    quote! {
        #[automatically_derived]
        impl ::harness::question::Question for #name {
            const NAME: &'static str = #stored;

            type Answer = #answer;
        }
    }
}
