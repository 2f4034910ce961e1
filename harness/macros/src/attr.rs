//! Options of the derives: `#[state(version = 3)]`.
//!
//! One parser reads every option. A [`Table`] lists the options that each place
//! accepts, and error messages print that table.

use std::fmt::Write as _;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::parse::Parser as _;
use syn::{Attribute, Expr, Ident, LitInt, LitStr, Meta, Path, Token, Type};

use crate::diagnostics::Errors;

/// The options that one place accepts.
pub(crate) struct Table {
    /// The name of the attribute: `state`.
    pub(crate) attr: &'static str,
    /// The place the options belong to: `a struct`.
    pub(crate) place: &'static str,
    pub(crate) known: &'static [Known],
    /// The same attribute in another place, for options that belong there.
    pub(crate) elsewhere: Option<&'static Table>,
}

/// An option.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// How the option is written: `version = 3`.
    pub(crate) example: &'static str,
    pub(crate) takes: Takes,
}

/// The value that an option takes.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    Nothing,
    Int,
    Str,
    /// A string; the option may be repeated.
    Strs,
    /// A path; the option may be repeated.
    Paths,
    Type,
    Expr,
    /// A path, with an optional field name in brackets: `upsert(id)`.
    Reducer,
}

/// The value of an option.
pub(crate) enum Value {
    Nothing,
    Int(LitInt),
    Str(LitStr),
    Path(Path),
    Type(Box<Type>),
    Expr(Box<Expr>),
    Reducer(Path, Option<Ident>),
}

/// The options given: each one known, none repeated.
#[derive(Default)]
pub(crate) struct Options(Vec<(&'static str, Ident, Value)>);

impl Options {
    /// Reads every attribute with the table's name.
    pub(crate) fn read(attrs: &[Attribute], table: &'static Table, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        for attr in attrs.iter().filter(|attr| attr.path().is_ident(table.attr)) {
            let read = match &attr.meta {
                Meta::List(list) => list.parse_args_with(|input: ParseStream<'_>| {
                    options.read_list(input, table, errors)
                }),
                other => Err(syn::Error::new_spanned(
                    other,
                    format!("options must be in brackets ({})", table.list()),
                )),
            };
            if let Err(error) = read {
                errors.absorb(error);
            }
        }
        options
    }

    /// Reads the arguments of an attribute macro.
    pub(crate) fn parse(args: TokenStream, table: &'static Table, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let list = |input: ParseStream<'_>| options.read_list(input, table, errors);
        if let Err(error) = list.parse2(args) {
            errors.absorb(error);
        }
        options
    }

    /// Removes an option and returns its key and value.
    pub(crate) fn take(&mut self, name: &str) -> Option<(Ident, Value)> {
        let at = self.0.iter().position(|(known, ..)| *known == name)?;
        let (_, key, value) = self.0.remove(at);
        Some((key, value))
    }

    /// Where an option stands that is not taken yet.
    pub(crate) fn span(&self, name: &str) -> Option<Span> {
        self.0.iter().find(|(known, ..)| *known == name).map(|(_, key, _)| key.span())
    }

    /// The options not taken yet, in order.
    pub(crate) fn rest(self) -> impl Iterator<Item = (&'static str, Ident)> {
        self.0.into_iter().map(|(name, key, _)| (name, key))
    }

    fn read_list(
        &mut self,
        input: ParseStream<'_>,
        table: &'static Table,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            match table.find(&key) {
                Err(error) => {
                    errors.absorb(error);
                    skip(input)?;
                }
                Ok(known)
                    if !matches!(known.takes, Takes::Strs | Takes::Paths)
                        && self.0.iter().any(|(name, ..)| *name == known.name) =>
                {
                    errors.push(&key, format!("`{key}` is set twice (remove one of them)"));
                    skip(input)?;
                }
                Ok(known) => match known.value(&key, input) {
                    Ok(value) => self.0.push((known.name, key, value)),
                    Err(error) => {
                        errors.absorb(error);
                        skip(input)?;
                    }
                },
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }
}

/// Skips to the next option.
fn skip(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

impl Table {
    fn find(&self, key: &Ident) -> syn::Result<&'static Known> {
        if let Some(known) = self.known.iter().find(|known| key == known.name) {
            return Ok(known);
        }
        let place = self
            .elsewhere
            .filter(|table| table.known.iter().any(|known| key == known.name))
            .map(|table| format!("option `{key}` belongs on {}", table.place));
        let unknown = place.unwrap_or_else(|| format!("unknown option `{key}`"));
        Err(syn::Error::new(key.span(), format!("{unknown} ({})", self.list())))
    }

    /// The options, for a message.
    fn list(&self) -> String {
        let Self { attr, place, .. } = self;
        if self.known.is_empty() {
            return format!("`#[{attr}(..)]` has no options on {place}; remove it");
        }
        let mut list = format!("the options of `#[{attr}(..)]` on {place} are");
        for (index, known) in self.known.iter().enumerate() {
            let comma = match index {
                0 => "",
                _ if index + 1 == self.known.len() => " and",
                _ => ",",
            };
            // Writing to a string cannot fail.
            let _ = write!(list, "{comma} `{}`", known.example);
        }
        list
    }
}

impl Known {
    fn value(&self, key: &Ident, input: ParseStream<'_>) -> syn::Result<Value> {
        let written = |error: syn::Error| {
            syn::Error::new(error.span(), format!("`{key}` must be written as `{}`", self.example))
        };
        if let Takes::Nothing = self.takes {
            return match input.is_empty() || input.peek(Token![,]) {
                true => Ok(Value::Nothing),
                false => Err(written(input.error(""))),
            };
        }
        if !input.peek(Token![=]) {
            return Err(written(syn::Error::new(key.span(), "")));
        }
        input.parse::<Token![=]>()?;
        let value = match self.takes {
            Takes::Nothing => Ok(Value::Nothing),
            Takes::Int => input.parse().map(Value::Int),
            Takes::Str | Takes::Strs => input.parse().map(Value::Str),
            Takes::Paths => input.call(Path::parse_mod_style).map(Value::Path),
            Takes::Type => input.parse().map(|ty| Value::Type(Box::new(ty))),
            Takes::Expr => input.parse().map(|expr| Value::Expr(Box::new(expr))),
            Takes::Reducer => reducer(input),
        };
        let value = value.map_err(written)?;
        match input.is_empty() || input.peek(Token![,]) {
            true => Ok(value),
            false => Err(written(input.error(""))),
        }
    }
}

fn reducer(input: ParseStream<'_>) -> syn::Result<Value> {
    let path: Path = input.parse()?;
    let mut argument = None;
    if input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in input);
        argument = Some(content.call(Ident::parse_any)?);
        if !content.is_empty() {
            return Err(content.error(""));
        }
    }
    Ok(Value::Reducer(path, argument))
}
