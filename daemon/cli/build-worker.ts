/**
 * Owns what the process of a build does: it reads from its standard input what is to be built, and says on its standard output how far it is. Where
 * that input ends, whoever has started it has, and so does everything of this process's group.
 */
import type { BuildWork } from "../compose/build-process.ts";
import { openOperator } from "../compose/operator.ts";
import { makeLog } from "../core/log.ts";
import { makePaths } from "../core/paths.ts";
import { describeError } from "../core/service-error.ts";
import type { BuildSaid } from "../domain/templates/builds/order.ts";
import { failureOf } from "../domain/templates/builds/queue.ts";
import { workOf } from "./worker-input.ts";

/** Resolves with the process's exit status. */
export async function runBuildWorker(): Promise<number> {
  const { config, order } = await workOf<BuildWork>(process.stdin, () => process.kill(-process.pid, "SIGKILL"));
  try {
    const operator = await openOperator({ config, paths: makePaths(config), log: makeLog("warn") });
    try {
      const ready = await operator.templates.build(order.template_id, {
        owner: order.org_id ?? undefined,
        recipe: order.recipe ?? undefined,
        dockerfile: order.dockerfile ?? undefined,
        context: order.context === null ? undefined : Uint8Array.fromBase64(order.context),
        args: order.args,
        secrets: Object.fromEntries(
          Object.entries(order.secrets).map(([name, base64]) => [name, Uint8Array.fromBase64(base64)]),
        ),
        registryAuth: order.registry_auth ?? undefined,
        anew: order.anew,
        onProgress: (line) => say({ line }),
        onStage: (stage) => say({ stage }),
      });
      await say({ ready });
      return 0;
    } finally {
      await operator.close();
    }
  } catch (error) {
    await say({ failed: failureOf(error), why: describeError(error) });
    return 1;
  }
}

const say = (message: BuildSaid): Promise<void> =>
  new Promise((told) => process.stdout.write(`${JSON.stringify(message)}\n`, () => told()));
