//! Many connections of one host: turns, and work that does not grow with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::group::*;
use base::wire::{ip, tcp};
use longhaul_tcp::{InitialWindow, Sharing};

/// Deficit round robin (Shreedhar and Varghese 1995): while several connections have a window to send, none is further
/// ahead of another than a quantum of 3000 bytes and a packet.
#[test]
fn connections_take_turns() {
    let config = sharing(Sharing::None);
    let mut group = Group::new(&config.with(|it| it.window.initial = InitialWindow::Segments(40)));
    let members: Vec<usize> = (0..5).map(|_| group.connect()).collect();
    let ids: Vec<_> = group.host.connections().map(|(id, _)| id).collect();
    let places: BTreeSet<usize> = ids.iter().map(|id| id.place()).collect();
    assert_eq!(places.len(), 5, "no two have the same");
    for &id in &ids {
        group.host.write(group.now, id, &[0; 40 * MSS as usize]).unwrap();
    }
    let mut sent: BTreeMap<u16, usize> =
        members.iter().map(|&at| (group.connection(at).remote().port(), 0)).collect();
    let mut order = Vec::new();
    while let Some(packet) = group.host.poll_transmit(group.now) {
        let view = ip::View::parse(&packet).unwrap();
        let port = tcp::View::parse(view.payload()).unwrap().dst_port();
        *sent.get_mut(&port).unwrap() += packet.len();
        order.push(port);
        let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
        assert!(most - least <= 3000 + packet.len(), "{sent:?}");
    }
    assert_eq!(order.len(), 5 * 40);
    assert!(order.chunks(3).take(5).all(|turn| turn[0] == turn[2]), "{order:?}");
}

/// Peng et al. 2001, with idle release: a thousand members that do nothing cost the busy one nothing: each is looked at
/// until it has given up what it does not use, and no more.
#[test]
fn idle_members_are_not_looked_at() {
    let mut config = literal();
    config.sharing.idle_release = true;
    let mut group = Group::new(&config);
    let busy = group.connect();
    group.write(busy, 100);
    group.round(&[busy]);
    for _ in 0..1000 {
        group.open();
    }
    let mut examined = Vec::new();
    for _ in 0..40 {
        group.write(busy, 10);
        group.round(&[busy]);
        group.after(400);
        examined.push(group.ecb().statistics.members_examined);
    }
    assert!(examined[39] >= 1000, "{examined:?}");
    assert!(examined[39] - examined[19] <= 2 * 20, "{examined:?}");
}
