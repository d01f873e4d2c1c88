/**
 * `roomd uninstall`: ends the service and every sandbox, removes the installed files, and with --purge the data too. Files of a package are
 * removed by apt, which calls this for the rest.
 */
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type Command, Option } from "commander";
import { DEFAULT_CONFIG_FILE, loadConfig } from "../../core/config/config.ts";
import {
  everythingOf,
  INSTALLED,
  INSTALLED_LINK,
  INSTALLED_UNIT,
  PACKAGED,
  type Paths,
  PURGE_LIST,
  UNIT_CHANGES,
} from "../../core/config/paths.ts";
import { sweepGuests } from "../../domain/templates/build-sandboxes.ts";
import { freeLeftovers, guestProcesses } from "../../host/guest/leftovers.ts";
import { runProgram, runWithProgress } from "../../host/process.ts";
import { hasSystemd, reloadUnits, serviceDo, stopSlice } from "../../host/system-service.ts";
import { CliError } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { counted, type JsonOption, say, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { endDaemon } from "./end-daemon.ts";
import { type ConfigOption, readConfiguration, withConfigOption } from "./operator.ts";
import { variablesOf } from "./setup/daemon.ts";

/** Files that packaging/install-host has installed on the host. */
const OF_INSTALL_HOST = ["/etc/apt/sources.list.d/roomd.sources", "/etc/apt/preferences.d/roomd", INSTALLED];
const USUAL = ["/var/lib/roomd", "/run/roomd"];
const STOP_DEADLINE_MS = 60_000;
const REMOVE_DEADLINE_MS = 30 * 60_000;

interface UninstallOptions extends JsonOption, ConfigOption {
  purge?: boolean;
  yes?: boolean;
  forPackage?: boolean;
}

export function uninstallCommand(): Command {
  const about = {
    summary: "end the service and every sandbox, and remove roomd from this host (as root)",
    notes: [
      "Without --purge the data stays: rooms, drives, keys and the audit are there again after another installation.",
      "Packages that roomd depends on stay: `apt-get autoremove` removes the unused ones.",
    ],
    examples: ["roomd uninstall --yes", "roomd uninstall --purge --yes"],
  };
  return withConfigOption(command("uninstall", about))
    .option("--purge", "remove the data too: every room, drive, key, template and the audit; and the configuration")
    .option("--yes", "do it; otherwise the actions are only printed")
    .addOption(new Option("--for-package", "leave the files to apt").hideHelp())
    .action(async (options: UninstallOptions) => {
      if (process.getuid?.() !== 0) throw new CliError("Run this as root.");
      const { paths } = readConfiguration(options);
      requireHostsOwn();
      requireNoPackage();
      if (!options.yes)
        throw new CliError({ detail: await plan(paths, options), errors: [], hint: "Run it with --yes to do it." });
      const ended = await takeDown(paths);
      if (options.forPackage) listForPurge(paths);
      else if (dirname(process.execPath) === PACKAGED) await removePackage(options.purge === true);
      else await removeFiles(paths, options.purge === true);
      const report = { sandboxes_ended: ended, purged: options.purge === true };
      await showValue(report, options, () => [
        `roomd's service has ended, and ${counted(ended, "sandbox", "sandboxes")} with it`,
      ]);
    });
}

/** The installed files are the host's; a daemon that variables configure is a different one. */
export function requireHostsOwn(): void {
  const [name] = Object.keys(variablesOf(loadConfig()));
  if (name === undefined) return;
  throw new CliError({
    detail: `${name} is set, which configures another daemon than the host's.`,
    errors: [],
    hint: "Unset it. A separate daemon is stopped by ending its process; remove its directories yourself.",
  });
}

/** A checkout does not remove a package that apt has installed. */
function requireNoPackage(): void {
  if (dirname(process.execPath) === PACKAGED || !existsSync(`${PACKAGED}/roomd`)) return;
  throw new CliError({
    detail: "roomd is installed as a package on this host, and this is another one.",
    errors: [],
    hint: "Run the package's: /usr/bin/roomd uninstall.",
  });
}

async function plan(paths: Paths, { purge }: UninstallOptions): Promise<string> {
  const running = existsSync(paths.guests) ? (await guestProcesses(paths.guests)).size : 0;
  const data = purge ? `, and removes ${paths.data} with every room, drive and key` : `; ${paths.data} stays`;
  return `This ends the service and ${counted(running, "sandbox", "sandboxes")}, and removes roomd from this host${data}.`;
}

/** Ends the daemon, then all guests. Returns the number of guests. */
async function takeDown(paths: Paths): Promise<number> {
  return await withProgress("ending the service and its sandboxes", async () => {
    if (hasSystemd()) await serviceDo("disable", "--now").catch(() => {});
    // A daemon that was started in the background has no service manager to stop it.
    await endDaemon(paths, STOP_DEADLINE_MS);
    for (const placeOf of [paths.trial, paths.film, paths.saving]) await sweepGuests(placeOf);
    if (!existsSync(paths.guests)) return 0;
    const left = [...(await guestProcesses(paths.guests)).keys()];
    await Promise.all(left.map((sandboxId) => freeLeftovers(paths.sandbox(sandboxId))));
    if (hasSystemd()) await stopSlice();
    const ours = everythingOf(paths).filter((path) => path.startsWith(`${paths.runtime}/`));
    for (const path of ours) rmSync(path, { recursive: true, force: true });
    removeIfEmpty(paths.runtime);
    return left.length;
  });
}

async function removePackage(purge: boolean): Promise<void> {
  await runWithProgress(["apt-get", "-y", purge ? "purge" : "remove", "roomd"], (line) => void say(line));
}

async function removeFiles(paths: Paths, purge: boolean): Promise<void> {
  for (const file of [INSTALLED_LINK, INSTALLED_UNIT]) rmSync(file, { force: true });
  for (const name of ["roomd", "roomd-agent"]) rmSync(`${INSTALLED}/${name}`, { force: true });
  if (hasSystemd()) await reloadUnits();
  if (!purge) return;
  const targets = [...everythingOf(paths), ...OF_INSTALL_HOST, UNIT_CHANGES, DEFAULT_CONFIG_FILE];
  // Uses rm(1): a guest may have created a tree deeper than the kernel's maximum path length.
  await runProgram(["rm", "-rf", "--one-file-system", "--", ...targets], REMOVE_DEADLINE_MS);
  for (const directory of [paths.data, paths.runtime, dirname(DEFAULT_CONFIG_FILE)]) removeIfEmpty(directory);
}

function removeIfEmpty(directory: string): void {
  if (existsSync(directory) && readdirSync(directory).length === 0) rmdirSync(directory);
}

/** When the package is purged, no binary is left that could read the configuration. */
function listForPurge(paths: Paths): void {
  const elsewhere = [paths.data, paths.runtime].some((directory) => !USUAL.includes(directory));
  rmSync(PURGE_LIST, { force: true });
  if (elsewhere) {
    mkdirSync(dirname(PURGE_LIST), { recursive: true, mode: 0o711 });
    writeFileSync(
      PURGE_LIST,
      everythingOf(paths)
        .map((path) => `${path}\n`)
        .join(""),
      { mode: 0o600 },
    );
  }
}
