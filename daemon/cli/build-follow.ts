/** Owns a build of the service on this terminal: what it tells as it comes, followed on from the last event when the service was away. */
import type { ErrorCode } from "../../shared/api/errors.ts";
import { type BuildFailure, templateBuildStream } from "../../shared/api/template-builds.ts";
import { CliError } from "./cli-error.ts";
import { send } from "./client.ts";
import { eventsOf, mayComeBack } from "./exec-follow.ts";
import { printable, say } from "./output.ts";
import { withProgress } from "./progress.ts";

const PAUSE_MS = 1000;

/** Tells all that comes after this event. Throws CliError where the build has failed. */
export async function followBuild(
  name: { template_id: string; build_id: string },
  after: number,
  follow = true,
): Promise<void> {
  await withProgress(`building template ${name.template_id}`, async (progress) => {
    const tell = async (text: string) => {
      progress.giveWay();
      await say(text);
    };
    for (let last = after; ; ) {
      try {
        const response = await send(templateBuildStream, { ...name, after: last, follow });
        for await (const event of eventsOf(response)) {
          if (typeof event.seq === "number") last = event.seq;
          if (event.type === "state") progress.say(`template ${name.template_id}: ${event.state}`);
          if (event.type === "stdout") await tell(printable(lineOf(event)));
          if (event.type === "exit") return requireReady(event.failure as BuildFailure | null);
          if (event.type === "error" && event.retryable !== true) throw new CliError(String(event.detail));
        }
        if (!follow) return;
      } catch (error) {
        if (!mayComeBack(error)) throw error;
        await tell("roomd: the connection was lost, reconnecting");
      }
      await Bun.sleep(PAUSE_MS);
    }
  });
}

const lineOf = ({ data_b64 }: Record<string, unknown>): string =>
  new TextDecoder().decode(Uint8Array.fromBase64(String(data_b64))).trimEnd();

function requireReady(failure: BuildFailure | null): void {
  if (failure === null) return;
  throw new CliError({ ...failure, code: failure.code as ErrorCode, errors: [] });
}
