//! The server of `OLLAMA_HOST`, which is written as the address that a server listens on.

use std::net::IpAddr;

const PORT: u16 = 11434;

/// The base URL of a host: `host`, `host:port`, `scheme://host:port/path`, an address, or a part of
/// these.
pub(super) fn base_url(host: &str) -> String {
    let host = host.trim();
    let (scheme, rest, port) = match host.split_once("://") {
        Some(("https", rest)) => ("https", rest, 443),
        Some(("http", rest)) => ("http", rest, 80),
        Some((_, rest)) => ("http", rest, PORT),
        None if host == "ollama.com" => ("https", host, 443),
        None => ("http", host, PORT),
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, format!("/{}", path.trim_end_matches('/'))),
        None => (rest, String::new()),
    };
    let path = if path == "/" { String::new() } else { path };
    let bare = authority.trim_matches(['[', ']']);
    let (name, port) = match bare.parse::<IpAddr>() {
        Ok(_) => (bare, port),
        Err(_) => match authority.rsplit_once(':') {
            Some((name, given)) => (name.trim_matches(['[', ']']), given.parse().unwrap_or(port)),
            None => (authority, port),
        },
    };
    let name = match name.parse::<IpAddr>() {
        // A server listens on every address, and is called on this machine's own.
        Ok(IpAddr::V4(address)) if address.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(address)) if address.is_unspecified() => "[::1]".to_owned(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ if name.is_empty() => "127.0.0.1".to_owned(),
        _ => name.to_owned(),
    };
    format!("{scheme}://{name}:{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::base_url;

    #[test]
    fn hosts_have_the_forms_that_the_server_takes() {
        // Of `Host` and `ConnectableHost` in `envconfig/config.go`, github.com/ollama/ollama, August 2026.
        for (host, url) in [
            ("", "http://127.0.0.1:11434"),
            ("1.2.3.4", "http://1.2.3.4:11434"),
            ("1.2.3.4:1234", "http://1.2.3.4:1234"),
            (":1234", "http://127.0.0.1:1234"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("[::]:1234", "http://[::1]:1234"),
            ("::1", "http://[::1]:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:1234", "http://[::1]:1234"),
            ("example.com", "http://example.com:11434"),
            ("example.com:1234", "http://example.com:1234"),
            ("http://example.com", "http://example.com:80"),
            ("https://example.com", "https://example.com:443"),
            ("https://example.com/ollama/", "https://example.com:443/ollama"),
            ("http://example.com:1234/", "http://example.com:1234"),
            ("example.com/ollama", "http://example.com:11434/ollama"),
            ("ollama.com", "https://ollama.com:443"),
            ("example.com:soon", "http://example.com:11434"),
            (" 1.2.3.4 ", "http://1.2.3.4:11434"),
        ] {
            assert_eq!(base_url(host), url, "{host}");
        }
    }
}
