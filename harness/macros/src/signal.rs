//! `#[derive(Signal)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Fields, Ident};

use crate::attr::{Options, Table};
use crate::diagnostics::Errors;
use crate::shape;

static ON_ENUM: Table = Table { attr: "signal", place: "an enum", known: &[], elsewhere: None };

static ON_VARIANT: Table =
    Table { attr: "signal", place: "a variant", known: &[], elsewhere: None };

/// An enum, and its variants without data.
struct Model<'a> {
    name: &'a Ident,
    variants: Vec<&'a Ident>,
}

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let code = parse(input, &mut errors).map(|model| emit(&model));
    errors.with(code.unwrap_or_default())
}

fn parse<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Option<Model<'a>> {
    let name = &input.ident;
    Options::read(&input.attrs, &ON_ENUM, errors);
    let plain = shape::is_plain(input, "Signal", errors);
    let mut variants = Vec::new();
    for variant in shape::variants(input, "Signal", errors).unwrap_or_default() {
        Options::read(&variant.attrs, &ON_VARIANT, errors);
        if matches!(variant.fields, Fields::Unit) {
            variants.push(&variant.ident);
        } else {
            let carrier = &variant.ident;
            errors.push(
                variant,
                format!(
                    "signal `{name}::{carrier}` carries data, but a signal is only a name \
                     (write `{carrier}`, and put the data in the state)"
                ),
            );
        }
    }
    plain.then_some(Model { name, variants })
}

fn emit(model: &Model<'_>) -> TokenStream {
    let Model { name, variants } = model;
    let text = name.to_string();
    let names = variants.iter().map(|variant| variant.to_string());
    let places = 0..variants.len();
    quote! {
        #[automatically_derived]
        impl ::harness::signal::Signal for #name {
            const NAME: &'static str = #text;

            const ALL: &'static [Self] = &[#(Self::#variants),*];

            #[allow(unreachable_patterns)]
            fn name(self) -> &'static str {
                match self {
                    #(Self::#variants => #names,)*
                    _ => "",
                }
            }

            #[allow(unreachable_patterns)]
            fn index(self) -> usize {
                match self {
                    #(Self::#variants => #places,)*
                    _ => 0,
                }
            }
        }
    }
}
