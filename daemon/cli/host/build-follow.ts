/** Shows the progress of a build of the service on this terminal. */
import type { ErrorCode } from "../../../shared/api/errors.ts";
import { type BuildFailure, templateBuildStream } from "../../../shared/api/template-builds.ts";
import { CliError } from "../kit/cli-error.ts";
import { events } from "../kit/client.ts";
import { printable, say } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";

/** Prints all events after this one. Throws CliError if the build fails. */
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
    const onCut = () => tell("roomd: the connection was lost, reconnecting");
    for await (const event of events(templateBuildStream, { ...name, after, follow }, { onCut })) {
      if (event.type === "state") progress.say(`template ${name.template_id}: ${event.state}`);
      if (event.type === "stdout") await tell(printable(lineOf(event)));
      if (event.type === "exit") requireReady(event.failure);
    }
  });
}

const lineOf = ({ data_b64 }: { data_b64: string }): string =>
  new TextDecoder().decode(Uint8Array.fromBase64(data_b64)).trimEnd();

function requireReady(failure: BuildFailure | null): void {
  if (failure === null) return;
  throw new CliError({ ...failure, code: failure.code as ErrorCode, errors: [] });
}
