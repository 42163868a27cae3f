//! Whether nftables lets a gateway's packets in and through, as far as that can be seen from its rules.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::Finding;
use crate::config::{Carrier, Config};

/// What the rules of this host say.
pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let listed = Command::new("nft")
        .args(["-j", "list", "ruleset"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let rules = listed.ok().filter(|output| output.status.success());
    let rules = rules.and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    match rules {
        Some(rules) => judge(config, &rules),
        None => vec![Finding::Advice(
            "the firewall cannot be seen (nft list ruleset, as root); if there is one, it has to let the carrier's port in".to_owned(),
        )],
    }
}

/// A chain that lets in, or through, only what a rule takes.
struct Closed<'a> {
    table: &'a Value,
    family: &'a Value,
    name: &'a Value,
}

/// What `nft -j list ruleset` means for this gateway. What a rule means is not computed: a chain that drops the rest is told if no rule of
/// the same table names what the gateway needs.
fn judge(config: &Config, rules: &Value) -> Vec<Finding> {
    let mut found = Vec::new();
    let carriers = config.carriers();
    let mut listens: Vec<(u16, bool)> =
        carriers.iter().filter_map(Carrier::listen).map(|at| (at.port(), at.is_ipv4())).collect();
    listens.sort_unstable();
    listens.dedup();
    for (port, is_ipv4) in listens.into_iter().filter(|_| super::is_called(config)) {
        let family = if is_ipv4 { "ip" } else { "ip6" };
        let mut closed = closed(rules, "input");
        closed.retain(|chain| chain.family == family || chain.family == "inet");
        found.push(match closed.iter().find(|chain| !chain.names(rules, &|value| is_port(value, port))) {
            Some(Closed { table, family, name }) => Finding::Advice(format!(
                "the firewall drops what no rule lets in (nft: chain {} of table {} {}), and none is seen to let in port {port}, where peers \
                 call; if they do not get through: nft insert rule {1} {2} {0} udp dport {port} accept",
                text(name),
                text(family),
                text(table),
            )),
            None => Finding::Good(format!("nftables is not seen to keep calls from port {port}")),
        });
    }
    found.extend(no_translation(config, rules));
    let device = config.tun.name.as_str();
    let is_device = |value: &Value| value.as_str() == Some(device);
    if let Some(chain) = closed(rules, "forward").iter().find(|chain| !chain.names(rules, &is_device)) {
        found.push(Finding::Advice(format!(
            "the firewall forwards only what a rule lets through (nft: chain {} of table {} {}), and none names {device}; if networks behind \
             this host are to use the tunnel, let it pass as iifname and oifname",
            text(chain.name),
            text(chain.family),
            text(chain.table),
        )));
    }
    found
}

/// Whether anything makes answers find back to those who come through the tunnel.
fn no_translation(config: &Config, rules: &Value) -> Option<Finding> {
    if !super::is_called(config) {
        return None;
    }
    let translates = |value: &Value| ["masquerade", "snat"].iter().any(|kind| value.get(kind).is_some());
    if holds(rules, &translates) {
        return Some(Finding::Good("nftables translates addresses (masquerade or snat)".to_owned()));
    }
    let device = config.tun.name.as_str();
    Some(Finding::Advice(format!(
        "nothing translates the addresses of what comes from {device}: beyond this host answers find back only where others have a route to the \
         tunnel's networks by this host; `longhaul init` prints the rules for a full tunnel"
    )))
}

/// The chains at this hook that end in a refusal, by their policy or by their last rule.
fn closed<'a>(rules: &'a Value, hook: &str) -> Vec<Closed<'a>> {
    let entries = || rules["nftables"].as_array().into_iter().flatten();
    let chains = entries().filter_map(|entry| entry.get("chain")).filter(|chain| chain["hook"] == hook);
    let closed = chains.filter(|chain| {
        let of = |rule: &&Value| {
            ["table", "family"].iter().all(|key| rule[key] == chain[key]) && rule["chain"] == chain["name"]
        };
        let last = entries().filter_map(|entry| entry.get("rule")).rfind(of);
        chain["policy"] == "drop" || last.is_some_and(refuses_all)
    });
    closed
        .map(|chain| Closed { table: &chain["table"], family: &chain["family"], name: &chain["name"] })
        .collect()
}

/// Whether a rule drops or rejects whatever reaches it.
fn refuses_all(rule: &Value) -> bool {
    let parts = || rule["expr"].as_array().into_iter().flatten();
    let is = |part: &Value, names: &[&str]| names.iter().any(|name| part.get(name).is_some());
    parts().all(|part| is(part, &["counter", "log", "limit", "drop", "reject"]))
        && parts().any(|part| is(part, &["drop", "reject"]))
}

impl Closed<'_> {
    /// Whether a rule of its table has such a value.
    fn names(&self, rules: &Value, what: &dyn Fn(&Value) -> bool) -> bool {
        let rules = rules["nftables"].as_array().into_iter().flatten().filter_map(|entry| entry.get("rule"));
        let mut own = rules.filter(|rule| rule["table"] == *self.table && rule["family"] == *self.family);
        own.any(|rule| holds(rule, what))
    }
}

/// Whether a value is this port, or a range that holds it.
fn is_port(value: &Value, port: u16) -> bool {
    let ends = value.get("range").and_then(Value::as_array).map(|ends| (ends.first(), ends.get(1)));
    match ends {
        Some((Some(first), Some(last))) => {
            first.as_u64().is_some_and(|first| first <= port.into())
                && last.as_u64().is_some_and(|last| last >= port.into())
        }
        _ => value.as_u64() == Some(port.into()),
    }
}

/// Whether a value is somewhere in another.
fn holds(within: &Value, what: &dyn Fn(&Value) -> bool) -> bool {
    what(within)
        || match within {
            Value::Array(items) => items.iter().any(|item| holds(item, what)),
            Value::Object(fields) => fields.values().any(|field| holds(field, what)),
            _ => false,
        }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(endpoint: &str) -> Config {
        let text = format!(
            "[tun]\nname = \"sat0\"\n[carrier.udp]\nlisten = \"0.0.0.0:51900\"\n[identity]\nprivate-key = \
             \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n[[peer]]\npublic-key = \
             \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n{endpoint}\n"
        );
        Config::parse("site.toml", &text).unwrap()
    }

    fn rules(policy: &str, port: u64) -> Value {
        json!({ "nftables": [
            { "chain": { "family": "inet", "table": "filter", "name": "input", "hook": "input", "policy": policy } },
            { "rule": { "family": "inet", "table": "filter", "chain": "input", "expr": [
                { "match": { "op": "==", "left": { "payload": { "protocol": "udp", "field": "dport" } }, "right": { "set": [22, port] } } },
                { "accept": null },
            ] } },
        ] })
    }

    fn warns(endpoint: &str, rules: &Value) -> bool {
        let found = judge(&config(endpoint), rules);
        found.iter().any(|finding| matches!(finding, Finding::Advice(text) if text.contains("port 51900")))
    }

    #[test]
    fn a_closed_port_where_peers_call_is_told() {
        assert!(warns("", &rules("drop", 443)));
        assert!(!warns("", &rules("drop", 51_900)));
        assert!(!warns("", &rules("accept", 443)));
        assert!(!warns("endpoint = \"192.0.2.1:51900\"", &rules("drop", 443)), "answers to calls come in");
        let mut other_family = rules("drop", 443);
        other_family["nftables"][0]["chain"]["family"] = "ip6".into();
        assert!(!warns("", &other_family), "calls come by IPv4");
        let mut range = rules("drop", 443);
        range["nftables"][1]["rule"]["expr"][0]["match"]["right"] = json!({ "range": [50_000, 60_000] });
        assert!(!warns("", &range));
        range["nftables"][1]["rule"]["expr"][0]["match"]["right"] = json!({ "range": [50_000, 51_899] });
        assert!(warns("", &range));
    }

    /// As firewalld and many rules by hand have it: the policy is to accept, and the last rule does not.
    #[test]
    fn a_last_rule_that_refuses_closes_a_chain() {
        let last = |expr: Value| {
            let mut rules = rules("accept", 443);
            let rule =
                json!({ "rule": { "family": "inet", "table": "filter", "chain": "input", "expr": expr } });
            rules["nftables"].as_array_mut().unwrap().push(rule);
            rules
        };
        assert!(warns("", &last(json!([{ "counter": null }, { "reject": { "type": "icmpx" } }]))));
        assert!(!warns("", &last(json!([{ "match": {} }, { "drop": null }]))), "only some are dropped");
        assert!(!warns("", &last(json!([{ "counter": null }]))));
    }

    #[test]
    fn a_closed_way_through_is_told() {
        let mut closed = rules("accept", 443);
        closed["nftables"][0]["chain"]["hook"] = "forward".into();
        closed["nftables"][0]["chain"]["policy"] = "drop".into();
        let advice = |rules: &Value| {
            let found = judge(&config(""), rules);
            found
                .iter()
                .any(|finding| matches!(finding, Finding::Advice(text) if text.contains("none names sat0")))
        };
        assert!(advice(&closed));
        closed["nftables"][1]["rule"]["expr"][0]["match"]["right"] = "sat0".into();
        assert!(!advice(&closed));
    }
}
