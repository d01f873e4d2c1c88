/**
 * Watches the certificate's files. A new certificate is used once it and its key exist and match, however many writes and renames that
 * takes; until then the previous one stays in use.
 */
import { type FSWatcher, readlinkSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { startInterval, stopTimer } from "../../core/clock.ts";
import { Mailbox } from "../../core/concurrency/mailbox.ts";
import type { Certificate } from "../../core/config/certificate.ts";
import type { Config } from "../../core/config/config.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { loadCertificate } from "./tls.ts";

/**
 * Poll interval, for file systems without notifications, directories that were replaced whole, and the age of a self-signed certificate.
 */
const LOOK_ANYWAY_MS = 3_600_000;
/** The kernel's limit of symbolic links in a path (ELOOP). */
const MAX_LINKS = 40;
/** Log message. */
export const CERTIFICATE_REJECTED = "the new certificate cannot be used; keeping the old one";

interface WatchDeps {
  config: Config;
  paths: Pick<Paths, "tls">;
  log: Log;
}

/**
 * Calls `onChange` with every usable certificate that differs from the one in use, `served` at first. If `onChange` throws, or the files
 * are not usable, that is logged once and the previous certificate stays in use.
 */
export function watchCertificate(
  deps: WatchDeps,
  served: Certificate,
  onChange: (certificate: Certificate) => void | Promise<void>,
): { close(): void } {
  const { config, paths, log } = deps;
  const mailbox = new Mailbox();
  const watchers = new Map<string, FSWatcher>();
  let current = served;
  let complaint = "";
  let isRequested = false;

  const look = async () => {
    isRequested = false;
    watchDirectories(watchers, [config["tls.cert"], config["tls.key"]], soon);
    try {
      const found = await loadCertificate(config, paths);
      complaint = "";
      if (!found || (found.cert === current.cert && found.key === current.key)) return;
      await onChange(found);
      current = found;
      log.info("serving a new certificate");
    } catch (error) {
      const why = describeError(error);
      if (why !== complaint) log.warn(CERTIFICATE_REJECTED, { error: why });
      complaint = why;
    }
  };
  const soon = () => {
    if (isRequested) return;
    isRequested = true;
    void mailbox.put(look);
  };

  const timer = startInterval(soon, LOOK_ANYWAY_MS);
  timer.unref();
  soon();
  return {
    close: () => {
      stopTimer(timer);
      isRequested = true; // no further check starts
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}

/** Watches exactly the directories that the paths of these files resolve through: any symbolic link on them may change. */
function watchDirectories(watchers: Map<string, FSWatcher>, files: readonly string[], onEvent: () => void): void {
  const directories = new Set(files.filter((file) => file !== "").flatMap((file) => [...directoriesOf(file)]));
  for (const [directory, watcher] of watchers) {
    if (directories.has(directory)) continue;
    watcher.close();
    watchers.delete(directory);
  }
  for (const directory of directories) {
    if (watchers.has(directory)) continue;
    try {
      const watcher = watch(directory, { persistent: false }, onEvent);
      watcher.on("error", () => watchers.delete(directory));
      watchers.set(directory, watcher);
    } catch {
      // The directory does not exist now: the hourly check retries.
    }
  }
}

/** Every directory with an entry that determines `file`: the parents of the symbolic links on its path, and its last directory. */
function* directoriesOf(file: string, links = 0): Generator<string> {
  let directory = "/";
  const parts = resolve(file).split("/").filter(Boolean);
  for (const [index, part] of parts.entries()) {
    const target = linkTarget(join(directory, part));
    if (target !== null && links < MAX_LINKS) {
      yield directory;
      yield* directoriesOf(join(resolve(directory, target), ...parts.slice(index + 1)), links + 1);
      return;
    }
    directory = join(directory, part);
  }
  yield dirname(directory);
}

function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
