/**
 * The daemon in setup: the permanent place of its binary, and its start. As a systemd service if systemd is process 1, else in the
 * background; also in the background if variables configure a separate daemon, since a service would not get them.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import unit from "../../../../packaging/systemd/roomd.service" with { type: "text" };
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { health } from "../../../../shared/api/service.ts";
import { type LoadedConfig, loadConfig } from "../../../core/config/config.ts";
import {
  INSTALLED,
  INSTALLED_LINK,
  INSTALLED_UNIT,
  makePaths,
  PACKAGED,
  type Paths,
} from "../../../core/config/paths.ts";
import { planListen } from "../../../edge/http/tls.ts";
import { startInBackground } from "../../../host/background.ts";
import { crossedDirectory } from "../../../host/isolation/directories.ts";
import { hasSystemd, reloadUnits, serviceDo, serviceLog } from "../../../host/system-service.ts";
import { CliError } from "../../kit/cli-error.ts";

/** The mirror of the template's packages is not a setting of the daemon. */
const NOT_OF_THE_DAEMON = "ROOMD_TEMPLATE_MIRROR";
const BINARIES = ["roomd", "roomd-agent"];
const START_DEADLINE_MS = 60_000;
const LOOK_MS = 100;
const LOG_LINES = 20;

/** Returns the outcome as text. Throws CliError with the daemon's last lines. */
export async function provideDaemon(): Promise<string> {
  const loaded = loadConfig();
  const { url } = planListen(loaded.config);
  const own = dirname(process.execPath);
  const running = await healthAt(url);
  if (running?.ready) {
    const startedAt = Date.now() - running.uptime_seconds * 1000;
    const isOlder = startedAt < statSync(process.execPath).mtimeMs;
    return `it is running at ${url}${isOlder ? ", from an earlier build; restart it to have this one" : ""}`;
  }
  const variables = variablesOf(loaded);
  if (Object.keys(variables).length > 0)
    return await startedInBackground(own, url, makePaths(loaded.config), variables);
  const home = own === PACKAGED ? PACKAGED : installFrom(own);
  if (!hasSystemd()) return await startedInBackground(home, url, makePaths(loaded.config), {});
  if (home === INSTALLED) writeFileSync(INSTALLED_UNIT, unit);
  await reloadUnits();
  await serviceDo("enable", "--quiet");
  await serviceDo("restart").catch(async () => {
    throw notStarted("systemd could not start the service.", await serviceLog(LOG_LINES));
  });
  await untilReady(url, () => serviceLog(LOG_LINES));
  return `started as the service roomd at ${url}`;
}

/** Variables of this shell that configure the daemon. */
export function variablesOf({ origins }: LoadedConfig): Record<string, string> {
  const names = Object.values(origins).filter((origin) => origin in process.env && origin !== NOT_OF_THE_DAEMON);
  return Object.fromEntries(names.map((name) => [name, process.env[name] ?? ""]));
}

/** Installs the binaries in a place that is independent of the checkout, and roomd into every user's PATH. */
function installFrom(directory: string): string {
  if (existsSync(join(PACKAGED, "roomd"))) {
    throw new CliError({
      detail: "roomd is installed as a package on this host, and this is another one.",
      errors: [],
      hint: "Run the package's `roomd setup`, or `apt-get remove roomd` first.",
    });
  }
  mkdirSync(INSTALLED, { recursive: true });
  for (const name of directory === INSTALLED ? [] : BINARIES) {
    const unfinished = join(INSTALLED, `.${name}`);
    copyFileSync(join(directory, name), unfinished);
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, join(INSTALLED, name));
  }
  rmSync(INSTALLED_LINK, { force: true });
  symlinkSync(join(INSTALLED, "roomd"), INSTALLED_LINK);
  return INSTALLED;
}

/**
 * Starts the daemon. Its environment has the configuration's variables only: a variable of the embedded runtime could execute other code.
 */
async function startedInBackground(
  home: string,
  url: string,
  { data, daemon_log: log }: Paths,
  variables: Record<string, string>,
): Promise<string> {
  crossedDirectory(data);
  const before = existsSync(log) ? statSync(log).size : 0;
  const daemon = startInBackground(
    [join(home, "roomd"), "serve"],
    { PATH: process.env.PATH ?? "", LANG: "C.UTF-8", ...variables },
    log,
  );
  let hasEnded = false;
  void daemon.exited.then(() => (hasEnded = true));
  const logTail = async () => readFileSync(log, "utf8").slice(before).split("\n").slice(-LOG_LINES).join("\n");
  await untilReady(url, logTail, () => hasEnded);
  return `started in the background at ${url}; its log is ${log}`;
}

async function untilReady(url: string, logTail: () => Promise<string>, hasEnded = () => false): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  while ((await healthAt(url))?.ready !== true) {
    if (hasEnded()) throw notStarted("The daemon exited immediately.", await logTail());
    if (performance.now() > deadline) {
      throw notStarted(`The daemon did not answer at ${url} within ${START_DEADLINE_MS / 1000} s.`, await logTail());
    }
    await Bun.sleep(LOOK_MS);
  }
}

function notStarted(detail: string, log: string): CliError {
  const hint = `Its last lines:\n${log.trimEnd()}\n\`roomd doctor\` lists missing requirements.`;
  return new CliError({ detail, errors: [], hint });
}

/** A daemon's health response; null if none answers. */
export async function healthAt(url: string): Promise<OutputOf<typeof health> | null> {
  try {
    const answer = await fetch(`${url}/health`, {
      tls: { rejectUnauthorized: false },
      signal: AbortSignal.timeout(5000),
    });
    return (await answer.json()) as OutputOf<typeof health>;
  } catch {
    return null;
  }
}
