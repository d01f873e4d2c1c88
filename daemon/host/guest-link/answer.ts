/** One request to a guest's agent, with a deadline, after which nothing of the request remains. */
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { within } from "../../core/concurrency/published.ts";
import type { GuestLink } from "./handshake.ts";

/** Resolves to an object, empty if the answer is not an object. Rejects with StreamError, or DeadlineError. */
export async function answerOf(
  link: GuestLink,
  request: { method: string },
  deadlineMs: number,
  label: string,
): Promise<object> {
  const stream = link.open(request);
  try {
    return Object(await within(stream.finished, deadlineMs, label)) as object;
  } finally {
    stream.fail(StreamErrorCode.detached, "the host has stopped waiting");
  }
}

/** Whether the connection failed, and not the request. */
export function isLinkLost(error: unknown): boolean {
  return error instanceof StreamError && error.code === StreamErrorCode.link_closed;
}
