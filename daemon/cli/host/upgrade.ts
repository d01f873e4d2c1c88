/**
 * `roomd upgrade`, which the package runs after its new binary is in place: restarts the service with it, and rolls back to the previous
 * binary and database if it does not answer. Guests keep running.
 *
 *   stop ─ copy the database, if the new binary would migrate it ─ start ─┬─ ready, and answers: the copies for the rollback are deleted
 *                                                                         └─ fails: stop ─ restore ─ start the previous ─ report it
 */
import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { COMMIT, VERSION } from "../../../shared/version.ts";
import type { Config } from "../../core/config/config.ts";
import { type Paths, PREVIOUS, PREVIOUS_UNIT_CHANGE, UNIT_CHANGES } from "../../core/config/paths.ts";
import { describeError } from "../../core/service-error.ts";
import { planListen } from "../../edge/http/tls.ts";
import { reloadUnits, serviceDo, serviceLog } from "../../host/system-service.ts";
import { CliError } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { type JsonOption, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { type ConfigOption, readConfiguration, withConfigOption } from "./operator.ts";
import { healthAt } from "./setup/daemon.ts";
import { requireHostsOwn } from "./uninstall.ts";
import { forgetDatabase, keepDatabase, putDatabaseBack } from "./upgrade-database.ts";

const DROP_IN = join(UNIT_CHANGES, basename(PREVIOUS_UNIT_CHANGE));
const LOG_LINES = 15;
/** A host that adopts many guests answers late. */
const ANSWER_DEADLINE_MS = 180_000;
const LOOK_MS = 500;

export function upgradeCommand(): Command {
  const about = {
    summary: "start the service with the newly installed binary, or roll back to the previous one (run by the package)",
    notes: [
      "Sandboxes and their commands keep running. The previous binary and, if the new one changes it, the previous database are kept until",
      "the new service has answered. If it does not, the previous binary is restored, and the exit status is 1. Run it again to retry.",
    ],
    examples: ["roomd upgrade"],
  };
  return withConfigOption(command("upgrade", about)).action(async (options: JsonOption & ConfigOption) => {
    requireHostsOwn();
    const { config, paths } = readConfiguration(options);
    await withProgress(`starting roomd ${VERSION}`, () => upgrade(config, paths));
    await showValue({ version: VERSION, commit: COMMIT }, options, () => [`roomd ${VERSION} (${COMMIT}) answers`]);
  });
}

async function upgrade(config: Config, paths: Paths): Promise<void> {
  rmSync(DROP_IN, { force: true });
  await reloadUnits();
  await serviceDo("stop");
  const why = await whyNotStarted(config, paths);
  if (why !== null) {
    const log = (await serviceLog(LOG_LINES).catch(() => "")).trimEnd();
    const outcome = await goBack(paths).catch(
      (error) => `The previous version did not start either: ${describeError(error)}`,
    );
    throw new CliError({
      detail: `roomd ${VERSION} (${COMMIT}) did not start: ${why}`,
      errors: [],
      hint: `Its last lines:\n${log}\n${outcome}`,
    });
  }
  // The service has notified systemd that it is ready, and may have accepted calls: from now on the database cannot be rolled back.
  forgetDatabase(paths);
  await untilAnswered(planListen(config).url);
  rmSync(PREVIOUS, { recursive: true, force: true });
}

/** Null after it is ready, as it notifies systemd. */
async function whyNotStarted(config: Config, paths: Paths): Promise<string | null> {
  try {
    await keepDatabase(paths, config);
    await serviceDo("start");
    return null;
  } catch (error) {
    return describeError(error);
  }
}

async function untilAnswered(url: string): Promise<void> {
  const deadline = performance.now() + ANSWER_DEADLINE_MS;
  for (let health = await healthAt(url); health?.version !== VERSION; health = await healthAt(url)) {
    if (performance.now() > deadline) {
      const responder = health ? `roomd ${health.version} answers` : "nothing answers";
      throw new CliError({
        detail: `roomd ${VERSION} (${COMMIT}) runs, but ${responder} at ${url}.`,
        errors: [],
        hint: "See `systemctl status roomd` and http.listen. The previous binary is kept until `dpkg --configure roomd` finds the new one.",
      });
    }
    await Bun.sleep(LOOK_MS);
  }
}

/** The outcome, in sentences. */
async function goBack(paths: Paths): Promise<string> {
  const binary = join(PREVIOUS, "roomd");
  if (!existsSync(binary))
    return "There is no previous binary to roll back to. See `journalctl -u roomd`, then run `dpkg --configure roomd`.";
  await serviceDo("stop");
  putDatabaseBack(paths);
  mkdirSync(UNIT_CHANGES, { recursive: true });
  copyFileSync(PREVIOUS_UNIT_CHANGE, DROP_IN);
  await reloadUnits();
  await serviceDo("start");
  forgetDatabase(paths);
  return "The previous version runs again, with its database. Once the cause is fixed, `dpkg --configure roomd` retries the new version.";
}
