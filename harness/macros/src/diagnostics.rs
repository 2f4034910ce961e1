//! Collects all errors of one item and reports them together.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error that points at `at`.
    pub(crate) fn push(&mut self, at: impl ToTokens, message: impl Display) {
        self.absorb(syn::Error::new_spanned(at, message));
    }

    /// Adds an error of the parser.
    pub(crate) fn absorb(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Whether there are no errors.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds all errors of `others`.
    pub(crate) fn take(&mut self, others: Self) {
        if let Some(error) = others.0 {
            self.absorb(error);
        }
    }

    /// The generated code followed by the errors. Code that uses the item still
    /// finds its impl, so it causes no further errors.
    pub(crate) fn with(self, code: TokenStream) -> TokenStream {
        let errors = self.0.map(syn::Error::into_compile_error);
        quote!(#code #errors)
    }
}
