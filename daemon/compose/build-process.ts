/** Worker process for template builds: it blocks no other work, ends with its parent, and leaves nothing. */
import { jsonPieces } from "../core/call/text-stream.ts";
import type { Config } from "../core/config/config.ts";
import type { Paths } from "../core/config/paths.ts";
import type { Log } from "../core/log.ts";
import { describeError } from "../core/service-error.ts";
import { sweepDeadBuilds } from "../domain/templates/build-sandboxes.ts";
import type { BuildOrder, BuildSaid } from "../domain/templates/builds/order.ts";
import { BUILD_WORKER } from "../host/own-processes.ts";
import { startOwn } from "../host/process.ts";

/** Input of the process: one line of JSON, in which the build context is a member of its own, since it may have megabytes. */
export interface BuildWork extends Pick<BuildOrder, "context"> {
  config: Config;
  order: Omit<BuildOrder, "context">;
}

/** Resolves when nothing of the process remains; rejects if it ended without a final message, unless the signal was given. */
export async function buildApart(
  { config, paths, log }: { config: Config; paths: Paths; log: Log },
  { context, ...order }: BuildOrder,
  onMessage: (message: BuildSaid) => void,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  let isDone = false;
  const hear = (line: string) => {
    const message = JSON.parse(line) as BuildSaid;
    isDone ||= "ready" in message || "failed" in message;
    onMessage(message);
  };
  const work: BuildWork = { config, order, context };
  const worker = startOwn(BUILD_WORKER, jsonPieces(work), hear);
  const end = () => void worker.end().catch(() => {});
  signal.addEventListener("abort", end, { once: true });
  try {
    const complaints = await worker.ended;
    if (!isDone && !signal.aborted)
      throw new Error(`the process of a build has ended: ${complaints.trim().slice(-2000)}`);
  } finally {
    signal.removeEventListener("abort", end);
    await worker.end();
    // Leftovers of a killed build.
    await sweepDeadBuilds(paths).catch((error: unknown) =>
      log.warn("failed to sweep leftovers of a template build", { error: describeError(error) }),
    );
  }
}
