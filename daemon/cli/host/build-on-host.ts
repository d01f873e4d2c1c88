/** A template build on this host: started here, followed to its end, and aborted without leftovers by ctrl-c. */
import { type ErrorCode, errorKind } from "../../../shared/api/errors.ts";
import type { TemplateRecord } from "../../../shared/api/templates.ts";
import { makeLog } from "../../core/log.ts";
import type { BuildOrder, BuildSaid } from "../../domain/templates/builds/order.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { type ConfigOption, ownConfiguration } from "./operator.ts";

const GIVEN_UP = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const SIGINT = 2;

/** Builds a template on this host; resolves with its record. Throws CliError. */
export async function buildOnHost(
  options: ConfigOption,
  order: Partial<BuildOrder> & Pick<BuildOrder, "template_id">,
  onProgress: (line: string) => void,
): Promise<TemplateRecord> {
  // Loaded lazily: client commands do not need the daemon's modules.
  const { buildApart } = await import("../../compose/build-process.ts");
  const over = new AbortController();
  const giveUp = () => over.abort();
  let last: Extract<BuildSaid, { ready: unknown } | { failed: unknown }> | undefined;
  for (const signal of GIVEN_UP) process.on(signal, giveUp);
  try {
    await buildApart(
      { ...ownConfiguration(options), log: makeLog("warn") },
      {
        org_id: null,
        recipe: null,
        dockerfile: null,
        context: null,
        args: {},
        secrets: {},
        registry_auth: null,
        anew: false,
        ...order,
      },
      (message) => {
        if ("line" in message) onProgress(message.line);
        else if (!("stage" in message)) last = message;
      },
      over.signal,
    );
  } finally {
    for (const signal of GIVEN_UP) process.off(signal, giveUp);
  }
  if (last && "ready" in last) return last.ready;
  if (!last) throw new CliError("The build was cancelled, and everything of it removed.", EXIT.signal + SIGINT);
  const { failed, why } = last;
  // The reader is the operator, who may be able to use the underlying error.
  if (failed.code === INTERNAL) throw new CliError(why);
  throw new CliError({
    ...failed,
    title: errorKind(failed.code as ErrorCode).title,
    code: failed.code as ErrorCode,
    errors: [],
  });
}

const INTERNAL = "internal";
