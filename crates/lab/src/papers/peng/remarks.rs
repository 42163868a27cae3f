//! Why claims come out as they do, where our runs show it.

/// The remark on a claim.
pub(super) fn of(claim: &str) -> Option<&'static str> {
    REMARKS.iter().find(|(id, _)| *id == claim).map(|(_, remark)| *remark)
}

const REMARKS: [(&str, &str); 11] = [
    (
        "peng-first-group-five-percent",
        "It fails most where the initial threshold is the receiver's window: the whole ensemble then leaves slow start at \
         one connection's window, and group 1 takes much longer.",
    ),
    (
        "peng-second-group-three-times",
        "At the default point three files need 12.6 s by the physical bound and TCP takes 15.5 s: no scheme can be three \
         times faster. There is room for it only where slow start leaves most of the link idle, which is at 45 Mbit/s with \
         windows above 64 KiB.",
    ),
    (
        "peng-second-group-starts-quicker",
        "It does start with more bytes. But the remembered aggregate leaves in one burst, and where that is more than the \
         queue takes its losses cost more than the slow start that was saved. The paper says nothing of pacing, nor of \
         the queue.",
    ),
    (
        "peng-ensemble-grows-like-one",
        "Three members may always send a segment each, so three acknowledgements open the aggregate in the first round \
         trip: it grows as one connection does, but is a round trip ahead, at about twice its window. Only a member that \
         may send nothing would avoid that, and it could not start.",
    ),
    (
        "peng-fewer-congestion-losses",
        "The second group's burst overflows the queue. A first group that ends without a loss leaves no threshold behind, \
         so the second one is in slow start when it does.",
    ),
    (
        "peng-pages-get-faster",
        "Page 2 already starts with a window beyond the receiver's 64 KiB, so page 3 cannot gain; with delayed \
         acknowledgements or a larger window the third page is faster.",
    ),
    (
        "peng-second-file-faster-at-every-delay",
        "Where it fails, the second file's first burst overflows the queue.",
    ),
    (
        "peng-gain-grows-with-delay",
        "Where it fails, losses decide more than the delay does: of STCP's first burst, or of TCP's slow start, at some \
         delays and not at others.",
    ),
    (
        "peng-fig2-handover",
        "Connection 2 pays a half at once. Where it fails, a cut or a time-out after the burst with which connection 2 \
         itself began falls into the hand-over.",
    ),
    (
        "peng-fig2-release",
        "Connection 3 takes over all that connection 2 had. Where that is more than double, the two were unequal after \
         losses, or connection 3 was in slow start and grew meanwhile.",
    ),
    (
        "peng-fair-and-conserving",
        "The sum is kept. The members start with equal shares, one after the other; where their bursts overflow the queue \
         the last one loses most and falls behind.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Paper as _;

    #[test]
    fn every_remark_is_on_a_claim() {
        let (file, text) = super::super::Peng.claims();
        let claims = crate::claims::parse(file, text).unwrap();
        for (id, _) in REMARKS {
            assert!(claims.iter().any(|claim| claim.id == id), "{id}");
        }
    }
}
