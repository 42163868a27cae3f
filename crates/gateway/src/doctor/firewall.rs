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

/// What `nft -j list ruleset` means for this gateway. A chain that drops what no rule takes is a fault only if no rule of the same table
/// names what the gateway needs: what a rule means is not computed.
fn judge(config: &Config, rules: &Value) -> Vec<Finding> {
    let entries = || rules["nftables"].as_array().into_iter().flatten();
    let drops = |hook: &str| -> Vec<(&Value, &Value)> {
        let chains = entries().filter_map(|entry| entry.get("chain"));
        let closed = chains.filter(|chain| chain["hook"] == hook && chain["policy"] == "drop");
        closed.map(|chain| (&chain["table"], &chain["family"])).collect()
    };
    let names = |(table, family): (&Value, &Value), what: &dyn Fn(&Value) -> bool| {
        let rules = entries().filter_map(|entry| entry.get("rule"));
        rules
            .filter(|rule| rule["table"] == *table && rule["family"] == *family)
            .any(|rule| holds(rule, what))
    };
    let mut found = Vec::new();
    let waits = config.peers.iter().any(|peer| peer.endpoint.is_none());
    if let Carrier::Udp(udp) = &config.carrier
        && waits
    {
        let port = udp.listen.port();
        let is_port = move |value: &Value| value.as_u64() == Some(port.into());
        let closed = drops("input").into_iter().find(|place| !names(*place, &is_port));
        found.push(match closed {
            Some((table, family)) => Finding::Fault(format!(
                "the firewall drops what no rule lets in (table {} {}), and no rule names port {port}, where peers call; for example: \
                 nft insert rule {0} {1} input udp dport {port} accept",
                text(family),
                text(table)
            )),
            None => Finding::Good(format!("no nftables chain is seen to keep calls from port {port}")),
        });
    }
    let device = config.tun.name.as_str().to_owned();
    let is_device = move |value: &Value| value.as_str() == Some(&device);
    if let Some((table, family)) = drops("forward").into_iter().find(|place| !names(*place, &is_device)) {
        found.push(Finding::Advice(format!(
            "the firewall forwards only what a rule lets through (table {} {}), and none names {}; if networks behind this host are to use \
             the tunnel, let it pass as iifname and oifname",
            text(family),
            text(table),
            config.tun.name.as_str()
        )));
    }
    found
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

    fn faults(endpoint: &str, rules: &Value) -> usize {
        let found = judge(&config(endpoint), rules);
        found.iter().filter(|finding| matches!(finding, Finding::Fault(_))).count()
    }

    #[test]
    fn a_closed_port_where_peers_call_is_a_fault() {
        assert_eq!(faults("", &rules("drop", 443)), 1);
        assert_eq!(faults("", &rules("drop", 51_900)), 0);
        assert_eq!(faults("", &rules("accept", 443)), 0);
        assert_eq!(
            faults("endpoint = \"192.0.2.1:51900\"", &rules("drop", 443)),
            0,
            "answers to calls come in"
        );
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
