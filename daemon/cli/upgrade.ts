/**
 * Owns `roomd upgrade`, which the package runs once its new binary is in place: the service is started again with it, and goes back to the
 * binary of before, and to the database of before, where it does not answer. Guests run on meanwhile.
 *
 *   stop ─ copy the database, where the new one would change it ─ start ─┬─ answers: what was kept for the way back goes
 *                                                                        └─ does not: stop ─ copy back ─ start the former ─ say so
 */
import { constants, copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { type Paths, PREVIOUS, PREVIOUS_UNIT_CHANGE, UNIT_CHANGES } from "../core/paths.ts";
import { wouldMigrate } from "../db/copy.ts";
import { planListen } from "../edge/http/tls.ts";
import { reloadUnits, serviceDo, serviceLog } from "../host/system-service.ts";
import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { type ConfigOption, readConfiguration, withConfigOption } from "./operator.ts";
import { type JsonOption, showValue } from "./output.ts";
import { withProgress } from "./progress.ts";
import { healthAt } from "./setup/daemon.ts";

const DROP_IN = join(UNIT_CHANGES, basename(PREVIOUS_UNIT_CHANGE));
const LOG_LINES = 15;
/** A database and what SQLite has beside it. */
const DATABASE_FILES = ["", "-wal"];

export function upgradeCommand(): Command {
  const about = {
    summary:
      "start the service with the binary that was just installed, or go back to the former (the package runs it)",
    notes: [
      "Sandboxes and their commands go on. The former binary and, where the new one changes it, the former database are kept until",
      "the new service has answered. If it does not, the former runs again, and the exit status is 1. Run it again to try anew.",
    ],
    examples: ["roomd upgrade"],
  };
  return withConfigOption(command("upgrade", about)).action(async (options: JsonOption & ConfigOption) => {
    const { config, paths } = readConfiguration(options);
    await withProgress(`starting roomd ${VERSION}`, () => upgrade(paths, planListen(config).url));
    await showValue({ version: VERSION, commit: COMMIT }, options, () => [`roomd ${VERSION} (${COMMIT}) answers`]);
  });
}

async function upgrade(paths: Paths, url: string): Promise<void> {
  rmSync(DROP_IN, { force: true });
  await reloadUnits();
  await serviceDo("stop");
  keepDatabase(paths);
  const why = await startedWith(url);
  if (why === null) {
    for (const kept of [PREVIOUS, paths.before_upgrade]) rmSync(kept, { recursive: true, force: true });
    return;
  }
  const log = (await serviceLog(LOG_LINES).catch(() => "")).trimEnd();
  const outcome = await goBack(paths);
  throw new CliError({
    detail: `roomd ${VERSION} (${COMMIT}) did not start: ${why}`,
    errors: [],
    hint: `Its last lines:\n${log}\n${outcome}`,
  });
}

/** Why the service does not answer as this version; null when it does. */
async function startedWith(url: string): Promise<string | null> {
  try {
    await serviceDo("start");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  // It answers, as it told systemd; whether it finds its host ready is another question, which the former one would answer alike.
  const health = await healthAt(url);
  if (!health) return `nothing answers at ${url}.`;
  return health.version === VERSION ? null : `roomd ${health.version} answers at ${url}.`;
}

/** What became of it, in sentences. */
async function goBack(paths: Paths): Promise<string> {
  const binary = join(PREVIOUS, "roomd");
  if (!existsSync(binary))
    return "There is no former binary to go back to. See `journalctl -u roomd`, then run `dpkg --configure roomd`.";
  await serviceDo("stop");
  copyFiles(join(paths.before_upgrade, basename(paths.database)), paths.database);
  mkdirSync(UNIT_CHANGES, { recursive: true });
  copyFileSync(PREVIOUS_UNIT_CHANGE, DROP_IN);
  await reloadUnits();
  await serviceDo("start");
  return "The former version runs again, with its database. When what is in the way is mended, `dpkg --configure roomd` tries the new one again.";
}

function keepDatabase(paths: Paths): void {
  rmSync(paths.before_upgrade, { recursive: true, force: true });
  if (!wouldMigrate(paths.database)) return;
  mkdirSync(paths.before_upgrade, { mode: 0o700 });
  copyFiles(paths.database, join(paths.before_upgrade, basename(paths.database)));
}

/** Nothing where there is none. The daemon that writes it has been stopped. */
function copyFiles(from: string, to: string): void {
  if (!existsSync(from)) return;
  for (const end of [...DATABASE_FILES, "-shm"]) rmSync(`${to}${end}`, { force: true });
  for (const end of DATABASE_FILES) {
    if (existsSync(`${from}${end}`)) copyFileSync(`${from}${end}`, `${to}${end}`, constants.COPYFILE_FICLONE);
  }
}
