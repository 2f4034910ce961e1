//! `#[derive(State)]`.

mod emit;
mod model;
mod parse;
mod parts;
mod reducer;
mod serde;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::diagnostics::Errors;

pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let code = parse::parse(input, &mut errors).map(|model| emit::emit(&model));
    errors.with(code.unwrap_or_default())
}
