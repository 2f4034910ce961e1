//! Which requests are let through.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Form;
use axum::extract::{Query, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, LOCATION,
    ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;
use subtle::ConstantTimeEq as _;

use crate::Shared;
use crate::page::{Tab, page};
use crate::problem::Problem;
use crate::query::with;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const COOKIE_NAME: &str = "harness_inspector";

/// Only the inspector's own files run, and only its own forms are sent.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Checks a request, and sets the policy of what it gets.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refused(&shared, &request) {
        None => next.run(request).await,
        Some(refused) => refused,
    };
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    // No page of another site keeps a window of it, or loads a part of it.
    set(OPENER, "same-origin");
    set(RESOURCE, "same-origin");
    // Without any referrer, browsers send no origin either.
    set(REFERRER_POLICY, "same-origin");
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// What a request gets that is not let through.
fn refused(shared: &Shared, request: &Request) -> Option<Response> {
    let headers = request.headers();
    let host = text(headers, &HOST).unwrap_or_default();
    if !is_ours(host, &shared.hosts) {
        let why = "The name in the address is not one of this inspector's. Use its address, \
                   `localhost`, or a name that it was given.";
        return Some(
            Problem::new(StatusCode::MISDIRECTED_REQUEST, "Wrong host", why).into_response(),
        );
    }
    let writes = request.method() != Method::GET && request.method() != Method::HEAD;
    if writes && !is_same_site(headers, host) {
        let why = "The request was made by a page of another site.";
        return Some(Problem::new(StatusCode::FORBIDDEN, "Refused", why).into_response());
    }
    let path = request.uri().path();
    let open = matches!(path, "/login" | "/style.css");
    if open || shared.token.is_none() || is_known(shared, headers) {
        return None;
    }
    if request.method() == Method::GET && path != "/session/events" {
        let asked = request.uri().path_and_query().map_or("/", |it| it.as_str());
        let login = match asked {
            "/" => "/login".to_owned(),
            asked => with("/login", &[("to", asked)]),
        };
        return Some((StatusCode::SEE_OTHER, [(LOCATION, login)]).into_response());
    }
    let why = "Give the token of this inspector first.";
    Some(Problem::new(StatusCode::UNAUTHORIZED, "Not signed in", why).into_response())
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the name was not made to resolve to this machine by a stranger: an address is no name.
fn is_ours(host: &str, names: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let known = |it: &str| it.eq_ignore_ascii_case(name);
    name.parse::<IpAddr>().is_ok() || known("localhost") || names.iter().any(|it| known(it))
}

/// Whether what writes comes from a page of the inspector, as far as the browser says.
fn is_same_site(headers: &HeaderMap, host: &str) -> bool {
    let from_here = |origin: &str| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
    };
    let site = text(headers, &SITE).is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin = headers.get(ORIGIN).is_none_or(|it| it.to_str().is_ok_and(from_here));
    site && origin
}

/// Whether two secrets are the same, in a time that does not say where they differ.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

fn is_known(shared: &Shared, headers: &HeaderMap) -> bool {
    let bearer = text(headers, &AUTHORIZATION).and_then(|it| it.strip_prefix("Bearer "));
    if let (Some(given), Some(token)) = (bearer, &shared.token) {
        return is_same(given, token);
    }
    let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    cookies.flat_map(|it| it.split(';')).any(|cookie| {
        let given = cookie.trim().strip_prefix(COOKIE_NAME).and_then(|it| it.strip_prefix('='));
        given.is_some_and(|given| is_same(given, &shared.cookie))
    })
}

/// What a user wants to see once signed in.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    to: String,
}

/// A page of this inspector, and not of a site that a link wants to lead to.
fn own_page(to: &str) -> &str {
    let is_own = to.starts_with("/session?") || to.starts_with("/session/") || to == "/waiting";
    let is_plain = to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own && is_plain { to } else { "/" }
}

/// Where a user gives the token.
pub(crate) async fn login_page(
    State(shared): State<Arc<Shared>>,
    Query(Wanted { to }): Query<Wanted>,
) -> Response {
    sign_in(&shared, own_page(&to), None).into_response()
}

fn sign_in(shared: &Shared, to: &str, problem: Option<&str>) -> Response {
    let body = html! {
        header class="title" { h1 { "Sign in" } }
        section class="panel narrow" {
            @if let Some(problem) = problem { p class="notice bad" role="alert" { (problem) } }
            form method="post" action="/login" {
                input type="hidden" name="to" value=(to);
                label for="token" { "Token" }
                input id="token" name="token" type="password" required autocomplete="current-password";
                button type="submit" { "Sign in" }
            }
        }
    };
    page(shared, "Sign in", Tab::None, body).into_response()
}

#[derive(serde::Deserialize)]
pub(crate) struct Login {
    token: String,
    #[serde(default)]
    to: String,
}

pub(crate) async fn login(
    State(shared): State<Arc<Shared>>,
    Form(Login { token: given, to }): Form<Login>,
) -> Response {
    let to = own_page(&to);
    let Some(token) = &shared.token else {
        return (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response();
    };
    if !is_same(&given, token) {
        let mut response = sign_in(&shared, to, Some("This is not the token."));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return response;
    }
    let cookie = format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/", shared.cookie);
    let headers = [(LOCATION, to.to_owned()), (SET_COOKIE, cookie)];
    (StatusCode::SEE_OTHER, headers).into_response()
}
