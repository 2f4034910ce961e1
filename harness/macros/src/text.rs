//! Identifiers, and type names for messages.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, PathArguments, PathSegment, Type};

/// Formats a type as it is written in source: `Vec<Option<String>>`.
pub(crate) fn type_name(ty: &impl ToTokens) -> String {
    let mut out = String::new();
    print(ty.to_token_stream(), &mut out);
    out
}

fn print(tokens: TokenStream, out: &mut String) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                out.push_str(open);
                print(group.stream(), out);
                out.push_str(close);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                ',' if tokens.peek().is_none() => {}
                mark @ (',' | ';') => out.extend([mark, ' ']),
                mark @ ('+' | '=') => out.extend([' ', mark, ' ']),
                '-' => out.push_str(" -"),
                '>' if out.ends_with(" -") => out.push_str("> "),
                mark => out.push(mark),
            },
            word => {
                if out.ends_with(|end: char| end.is_alphanumeric() || matches!(end, '_' | '>')) {
                    out.push(' ');
                }
                out.push_str(&word.to_string());
            }
        }
    }
}

/// The type arguments of a path's segment: `K` and `V` of `HashMap<K, V>`.
pub(crate) fn arguments(segment: &PathSegment) -> Vec<&Type> {
    let PathArguments::AngleBracketed(list) = &segment.arguments else {
        return Vec::new();
    };
    let types = list.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

/// Sets the span of the tokens for error messages, and keeps their name
/// resolution.
pub(crate) fn point_at(tokens: &impl ToTokens, span: Span) -> TokenStream {
    each(tokens.to_token_stream(), &mut |token| {
        token.set_span(token.span().located_at(span));
    })
}

/// Replaces `Self` by the type's name, because `Self` means another type in
/// another item.
pub(crate) fn without_self(tokens: &impl ToTokens, name: &Ident) -> TokenStream {
    each(tokens.to_token_stream(), &mut |token| {
        if matches!(token, TokenTree::Ident(ident) if *ident == "Self") {
            *token = TokenTree::Ident(Ident::new(&name.to_string(), token.span()));
        }
    })
}

fn each(tokens: TokenStream, change: &mut impl FnMut(&mut TokenTree)) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            if let TokenTree::Group(group) = &token {
                let stream = each(group.stream(), change);
                let mut changed = proc_macro2::Group::new(group.delimiter(), stream);
                changed.set_span(group.span());
                token = TokenTree::Group(changed);
            }
            change(&mut token);
            token
        })
        .collect()
}

/// `ApproveCall` as `approve_call`, `HTTPCall` as `http_call`.
pub(crate) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (index, c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| chars.get(index));
        let after = chars.get(index + 1);
        let starts = c.is_uppercase()
            && before.is_some_and(|before| {
                *before != '_'
                    && (!before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()))
            });
        if starts {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Whether two words differ by one typing error: one character added, removed or
/// changed, or two neighbours swapped.
pub(crate) fn is_slip(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = |pair: &(&char, &char)| pair.0 == pair.1;
    let head = one.iter().zip(&other).take_while(same).count();
    let (one, other) = (&one[head..], &other[head..]);
    match (one, other) {
        ([a, b, one @ ..], [c, d, other @ ..]) if a == d && b == c => one == other,
        ([_, one @ ..], [_, other @ ..]) if one == other => true,
        ([_, one @ ..], other) if one == other => true,
        (one, [_, other @ ..]) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_print_as_written() {
        for text in [
            "Vec<Option<String>>",
            "[u8; 4]",
            "(u8, String)",
            "&'static str",
            "Arc<dyn Fn(&mut T, u8) -> Result<(), E> + Send + 'static>",
            "<Vec<u8> as IntoIterator>::Item",
            "::std::collections::BTreeMap<K, V>",
        ] {
            let ty: syn::Type = syn::parse_str(text).unwrap();
            assert_eq!(type_name(&ty), text);
        }
    }

    #[test]
    fn snake_case_of_types() {
        for (name, snake) in [
            ("ApproveCall", "approve_call"),
            ("HTTPCall", "http_call"),
            ("A", "a"),
            ("Step2Go", "step2_go"),
            ("Already_Snake", "already_snake"),
        ] {
            assert_eq!(snake_case(name), snake);
        }
    }

    #[test]
    fn detects_one_typing_error() {
        assert!(is_slip("apend", "append"));
        assert!(is_slip("appennd", "append"));
        assert!(is_slip("appned", "append"));
        assert!(is_slip("mix", "min"));
        assert!(!is_slip("extend", "append"));
        assert!(!is_slip("append", "append"));
    }
}
