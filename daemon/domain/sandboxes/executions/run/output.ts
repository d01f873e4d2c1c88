/**
 * Follows an execution to its end across connections: if one is lost, it continues over the next, from the piece after the last received. A
 * slow consumer slows the command down (backpressure), unless another reader follows it faster.
 */
import type { ExecState } from "../../../../../shared/agent-protocol/messages.ts";
import type { Piece } from "../../../../../shared/agent-protocol/pieces.ts";
import { faultPoint } from "../../../../core/fault-points.ts";
import { isLinkLost } from "../../../../host/guest-link/answer.ts";
import {
  type Following,
  feedInGuest,
  followInGuest,
  startFollowed,
  startInGuest,
} from "../../../../host/guest-link/exec.ts";
import type { GuestLink } from "../../../../host/guest-link/handshake.ts";
import { asServiceError, type Started } from "./errors.ts";
import { type Backstop, Tries } from "./patience.ts";
import type { CommandRequest } from "./request.ts";

/**
 * The guest's current link. Waits a short time for a reconnecting link, and for a started command as long as the sandbox is paused or
 * hibernated, unless `over` is aborted first. Throws ServiceError that contains `started`.
 */
export type Reach = (started: Started, over?: AbortSignal) => Promise<GuestLink>;

interface From {
  after: number;
  follow: boolean;
  over?: AbortSignal | undefined;
  /** The command never waits for this reader. */
  aside?: boolean;
}

/** Follows an execution from the piece after `after`. Throws ServiceError. */
export async function followFrom(
  reach: Reach,
  exec_id: string,
  { after, follow, over, aside = false }: From,
): Promise<Following> {
  try {
    return await followInGuest(await reach(true, over), { exec_id, after, follow, aside });
  } catch (error) {
    throw asServiceError(error, { exec_id, started: true });
  }
}

/** Starts a command, or finds it already started, and follows it from its first piece. Throws ServiceError. */
export async function beginFollowed(reach: Reach, request: CommandRequest): Promise<Following> {
  const { begun } = await beginWith(reach, request, startFollowed);
  return begun;
}

/** Starts a command, or finds it started by an earlier request. Throws ServiceError. */
export async function begin(reach: Reach, request: CommandRequest) {
  const { begun, again } = await beginWith(reach, request, startInGuest);
  return { execution: begun.execution, existing: begun.existing && !again };
}

/** `again`: the request was sent more than once, because a connection was lost. */
async function beginWith<T>(
  reach: Reach,
  { start }: CommandRequest,
  ask: (link: GuestLink, start: CommandRequest["start"]) => Promise<T>,
): Promise<{ begun: T; again: boolean }> {
  let started: Started = false;
  const tries = new Tries();
  for (;;) {
    try {
      const link = await reach(started);
      await faultPoint("exec.before");
      const response = ask(link, start);
      await faultPoint("exec.sent");
      return { begun: await response, again: started === "unknown" };
    } catch (error) {
      // The command may have started. A retry is safe: the guest recognizes the exec_id and runs the command once.
      if (isLinkLost(error)) {
        started = "unknown";
        if (await tries.again()) continue;
      }
      const { exec_id, cwd, user } = start;
      throw asServiceError(error, { exec_id, cwd: cwd ?? undefined, user: user ?? undefined, started });
    }
  }
}

/**
 * Yields all following pieces, then returns the final state of the execution. Aborted by `signal` and by `backstop`; without `backstop` it
 * may run for as long as the guest reports it running. Throws ServiceError.
 */
export async function* outputOf(
  reach: Reach,
  first: Following,
  after: number,
  { signal, backstop, aside }: { signal?: AbortSignal; backstop?: Backstop; aside?: boolean } = {},
): AsyncGenerator<readonly Piece[], ExecState> {
  const { exec_id } = first.execution;
  const tries = new Tries(Number.POSITIVE_INFINITY);
  let known = after;
  const again = () => followFrom(reach, exec_id, { after: known, follow: true, over: signal, aside: aside ?? false });
  for (let following = first; ; following = await again()) {
    const giveUp = () => following.close();
    signal?.addEventListener("abort", giveUp);
    const stopWatch = backstop?.watch(following);
    try {
      signal?.throwIfAborted();
      for await (const pieces of following.pieces()) {
        known = pieces.at(-1)?.seq ?? known;
        tries.succeeded();
        yield pieces;
      }
      return await following.finished;
    } catch (error) {
      const isOver = signal?.aborted || backstop?.passed || !isLinkLost(error);
      if (isOver || !(await tries.again(signal))) throw asServiceError(error, { exec_id, started: true });
    } finally {
      stopWatch?.();
      signal?.removeEventListener("abort", giveUp);
      following.close();
    }
  }
}

/** Sends standard input over as many connections as needed: bytes that have arrived are not sent again. Never throws. */
export async function feedAll(reach: Reach, request: CommandRequest, over: AbortSignal): Promise<void> {
  const { stdin, start, stdin_ends: eof } = request;
  if (stdin === null) return;
  const tries = new Tries(Number.POSITIVE_INFINITY);
  while (!over.aborted) {
    try {
      await feedInGuest(await reach(true, over), { exec_id: start.exec_id, offset: 0, eof }, stdin, over);
      return;
    } catch (error) {
      // A command need not read its input, and may have exited.
      if (!isLinkLost(error) || !(await tries.again(over))) return;
    }
  }
}
