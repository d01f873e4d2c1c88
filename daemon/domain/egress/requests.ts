/** Dispatch of a guest's requests to its guard, and the configuration shared by all guards. */
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import { type GuestRequest, StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { GuestRequests } from "../../host/guest-link/handshake.ts";
import { readRanges } from "./addresses.ts";
import type { Ground } from "./allowlist.ts";
import type { Guard } from "./guard.ts";
import { makeIsHosts } from "./host-addresses.ts";

type EgressMethod = Exclude<GuestRequest["method"], "room_call">;

/** The guest's input is untrusted: nothing about a request is certain. */
export function requestsTo(guard: Guard, log: Log): GuestRequests {
  const handlers: Record<EgressMethod, (stream: Stream, request: object) => Promise<void>> = {
    egress_resolve: (stream, request) => guard.resolve(stream, request),
    egress_records: (stream, request) => guard.records(stream, request),
    egress_connect: (stream, request) => guard.connect(stream, request),
  };
  return (stream, request) => {
    const { method } = Object(request) as { method?: unknown };
    const known = typeof method === "string" && Object.hasOwn(handlers, method);
    if (!known) return stream.fail(StreamErrorCode.unknown_method, "there is no such method");
    handlers[method as EgressMethod](stream, request as object).catch((error: unknown) => {
      log.error("egress", { error: describeError(error) });
      stream.fail(StreamErrorCode.internal, "the host failed");
    });
  };
}

/** Throws if the configured ranges are invalid. */
export function groundOf(privateRanges: string): Ground {
  const ranges = readRanges(privateRanges, (part) => {
    throw new Error(`egress.private_ranges: ${part} is neither an address nor a CIDR`);
  });
  return { privateRanges: ranges, isHosts: makeIsHosts() };
}

/** Bytes per second; 0 MiB: unlimited. */
export const paceOf = (mibPerSecond: number): number =>
  mibPerSecond === 0 ? Number.MAX_SAFE_INTEGER : mibPerSecond * 1024 * 1024;
