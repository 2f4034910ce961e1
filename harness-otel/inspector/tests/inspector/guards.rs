//! Requests that are refused.

use std::sync::Arc;

use harness::Sessions;
use harness::inspect::Phase;
use harness::store::MemoryStore;
use harness_inspector::{BindError, Inspector};

use super::rig::{Rig, waiting};

#[tokio::test]
async fn other_hosts_are_refused() {
    let rig = Rig::over(Arc::new(MemoryStore::new()), |it| it.host("box.example")).await;
    for (host, status) in [
        ("127.0.0.1:80", 200),
        ("localhost", 200),
        ("[::1]:8090", 200),
        ("box.example:8090", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8090", 421),
        ("", 421),
    ] {
        let got = rig.ask("GET", "/", &[("host", host)], "").await;
        assert_eq!(got.status, status, "{host}");
    }
}

#[tokio::test]
async fn a_token_is_asked_for_and_compared() {
    let rig = Rig::over(Arc::new(MemoryStore::new()), |it| it.token("s3cret")).await;
    let got = rig.get("/").await;
    assert_eq!((got.status, got.header("location")), (303, Some("/login")));
    for wrong in ["", "s3cre", "s3crett", "S3cret"] {
        assert_eq!(rig.post("/login", &[("token", wrong)]).await.status, 401, "{wrong}");
        let bearer = format!("Bearer {wrong}");
        let got = rig.ask("GET", "/", &[("authorization", &bearer)], "").await;
        assert_eq!(got.status, 303, "{wrong}");
    }
    assert_eq!(rig.ask("GET", "/", &[("authorization", "Bearer s3cret")], "").await.status, 200);

    let got = rig.post("/login", &[("token", "s3cret")]).await;
    let cookie = got.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("s3cret"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(rig.ask("GET", "/", &[("cookie", cookie)], "").await.status, 200);
    let got = rig.ask("GET", "/", &[("cookie", "harness_inspector=0")], "").await;
    assert_eq!(got.status, 303);
    assert_eq!(rig.get("/session/events?id=s").await.status, 401);
    assert_eq!(rig.post("/session/stop", &[("id", "s")]).await.status, 401);
}

/// A link to a session leads there once the token is given, and to no other site.
#[tokio::test]
async fn signing_in_leads_to_the_page_that_was_asked_for() {
    let rig = Rig::over(Arc::new(MemoryStore::new()), |it| it.token("s3cret")).await;
    let asked = "/session?id=t-1&done=<b>";
    let got = rig.get(&asked.replace('<', "%3C").replace('>', "%3E")).await;
    let login = got.header("location").unwrap();
    assert_eq!(login, "/login?to=%2Fsession%3Fid%3Dt-1%26done%3D%253Cb%253E");
    let to = rig.get(login).await.hidden("to").replace("&amp;", "&");
    let got = rig.post("/login", &[("token", "wrong"), ("to", &to)]).await;
    assert_eq!((got.status, got.hidden("to").replace("&amp;", "&")), (401, to.clone()));
    let got = rig.post("/login", &[("token", "s3cret"), ("to", &to)]).await;
    assert_eq!(got.header("location"), Some("/session?id=t-1&done=%3Cb%3E"));
    for other in [
        "//evil.example",
        "https://evil.example/session?id=x",
        "/\\evil.example",
        "/session?\r\nset-cookie: a=b",
        "/session/\\..",
        "session?id=x",
        "/login",
    ] {
        let got = rig.post("/login", &[("token", "s3cret"), ("to", other)]).await;
        assert_eq!((got.status, got.header("location")), (303, Some("/")), "{other}");
        assert_eq!(got.head.matches("set-cookie").count(), 1, "{}", got.head);
    }
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() {
    let inspector = Inspector::new(Arc::new(MemoryStore::new()));
    for token in [None, Some("")] {
        let inspector = match token {
            Some(token) => inspector.clone().token(token),
            None => inspector.clone(),
        };
        let refused = inspector.bind("0.0.0.0:0".parse().unwrap()).await;
        assert!(matches!(refused, Err(BindError::NeedsToken(_))));
    }
    inspector.clone().token("s3cret").bind("0.0.0.0:0".parse().unwrap()).await.unwrap();
    // A token that was not set protects nothing, and who sets one expects that it does.
    let refused = inspector.token("").bind("127.0.0.1:0".parse().unwrap()).await;
    assert!(matches!(refused, Err(BindError::EmptyToken)));
}

#[tokio::test]
async fn forged_forms_change_nothing() {
    let rig = Rig::new().await;
    waiting(&rig, "t-1").await;
    let page = rig.get("/session?id=t-1").await;
    let (token, interrupt) = (page.hidden("token"), page.hidden("interrupt"));
    let body = |token: &str| {
        let fields =
            [("token", token), ("id", "t-1"), ("interrupt", &interrupt), ("by", "x"), ("a?", "0")];
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    };
    let own = format!("http://{}", rig.address);
    let path = "/session/answer";
    for (headers, token) in [
        (&[][..], ""),
        (&[], "0"),
        (&[("sec-fetch-site", "cross-site")], &*token),
        (&[("sec-fetch-site", "same-site")], &token),
        (&[("origin", "http://evil.example")], &token),
        (&[("origin", "null")], &token),
        (&[("origin", "http://127.0.0.1:1")], &token),
    ] {
        let got = rig.ask("POST", path, headers, &body(token)).await;
        assert_eq!(got.status, 403, "{headers:?} {token}");
    }
    // A form that another inspector has made does not do.
    let other = Rig::over(Arc::clone(&rig.store), |it| it.allow_answers()).await;
    assert_eq!(other.ask("POST", path, &[], &body(&token)).await.status, 403);
    let reading = Rig::over(Arc::clone(&rig.store), |it| it).await;
    assert_eq!(reading.ask("POST", path, &[], &body(&token)).await.status, 403);
    assert!(!reading.get("/session?id=t-1").await.body.contains("<form method=\"post\""));
    let sessions = Sessions::shared(Arc::clone(&rig.store));
    assert_eq!(sessions.status("t-1").await.unwrap().questions.len(), 1);

    let headers = [("origin", &*own), ("sec-fetch-site", "same-origin")];
    assert_eq!(rig.ask("POST", path, &headers, &body(&token)).await.status, 303);
    let status = sessions.status("t-1").await.unwrap();
    assert_eq!((status.phase, status.questions.len()), (Phase::Interrupted, 0));
}

#[tokio::test]
async fn every_answer_has_the_policy() {
    let rig = Rig::new().await;
    for path in ["/", "/waiting", "/nothing", "/style.css", "/live.js", "/session?id=none"] {
        let got = rig.get(path).await;
        let policy = got.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(got.header("x-content-type-options"), Some("nosniff"), "{path}");
        for policy in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(got.header(policy), Some("same-origin"), "{path}");
        }
        // No markup that the policy would refuse.
        assert!(!got.body.contains(" style=") && !got.body.contains("<style"), "{path}");
        assert!(!got.body.contains(" onclick="), "{path}");
    }
}
