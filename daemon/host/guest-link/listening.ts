/** Query for the ports of a guest that have a listener: the host's half of guest-agent/ports/listening.ts. */
import type { ListeningRequest } from "../../../shared/agent-protocol/messages.ts";
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { within } from "../../core/concurrency/published.ts";
import type { GuestLink } from "./handshake.ts";

const ANSWER_MS = 5000;

/** The subset of `ports` with a listener. Rejects with StreamError, or DeadlineError. */
export async function listeningInGuest(link: GuestLink, ports: readonly number[]): Promise<Set<number>> {
  const request: ListeningRequest = { method: "listening", ports: [...ports] };
  const stream = link.open(request);
  try {
    const response = Object(await within(stream.finished, ANSWER_MS, "listing the listening ports")) as {
      ports?: unknown;
    };
    const found: unknown[] = Array.isArray(response.ports) ? response.ports : [];
    return new Set(ports.filter((port) => found.includes(port)));
  } finally {
    stream.fail(StreamErrorCode.detached, "the host has stopped waiting");
  }
}
