//! All mistakes of one item, reported together.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds a mistake, pointing at `at`.
    pub(crate) fn push(&mut self, at: impl ToTokens, message: impl Display) {
        self.absorb(syn::Error::new_spanned(at, message));
    }

    /// Adds what the parser reported.
    pub(crate) fn absorb(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds all of those.
    pub(crate) fn take(&mut self, others: Self) {
        if let Some(error) = others.0 {
            self.absorb(error);
        }
    }

    /// The code of the item, and the mistakes beside it: code that uses the item
    /// still finds its impl, so it adds no errors of its own.
    pub(crate) fn with(self, code: TokenStream) -> TokenStream {
        let errors = self.0.map(syn::Error::into_compile_error);
        quote!(#code #errors)
    }
}
