/** A guest agent's methods on this host, and the host's half of its link, within this process. */
import type { GuestLink } from "../../../daemon/host/guest-link/handshake.ts";
import { PausableDeadlines } from "../../../daemon/host/guest-link/pausable-deadlines.ts";
import { Link, type Stream, type Transport } from "../../../shared/agent-protocol/link.ts";

type Methods = Record<string, (stream: Stream, request: object) => unknown>;

/** A connection to an agent that has these methods; `points` is the host's charge to the guest. */
export function linkedGuest(methods: Methods): { link: GuestLink; spent: { points: number }; drop(): void } {
  const ends: { host: Link; guest: Link } = {} as never;
  // One turn later, as on a real connection; the sender's memory is its own again by then.
  const to = (end: "host" | "guest"): Transport => ({
    write: (bytes) => {
      const copy = new Uint8Array(bytes);
      setImmediate(() => ends[end].receive(copy));
      return undefined;
    },
    close: () => void setImmediate(() => ends[end].close("the peer has closed")),
  });
  const common = { onHandshake: () => {}, onClosed: () => {} };
  ends.host = new Link({ ...common, side: "host", transport: to("guest"), maxPeerStreams: 0, onOpen: () => {} });
  ends.guest = new Link({
    ...common,
    side: "guest",
    transport: to("host"),
    maxPeerStreams: 64,
    onOpen: (stream, request) => {
      const { method } = request as { method: string };
      const handler = methods[method];
      if (!handler) return stream.fail("unknown_method", `no method ${method}`);
      Promise.try(handler, stream, request as object).catch((error: unknown) =>
        stream.fail("invalid_request", String(error)),
      );
    },
  });
  const spent = { points: 0 };
  const link = {
    open: (request: { method: string }) => ends.host.open(request),
    charge: (points: number) => {
      spent.points += points;
    },
    standstill: new PausableDeadlines(),
  };
  return { link: link as unknown as GuestLink, spent, drop: () => ends.host.close("dropped") };
}
