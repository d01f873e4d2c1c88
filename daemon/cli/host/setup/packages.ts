/** The first step of setup: packages that the host lacks, by packaging/install-host, which is in the binary. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import debianMirror from "../../../../packaging/debian-mirror" with { type: "text" };
import installer from "../../../../packaging/install-host" with { type: "text" };
import { runWithProgress } from "../../../host/process.ts";
import { CliError } from "../../kit/cli-error.ts";

/** Throws CliError with the installer's message. */
export async function installPackages(note: (line: string) => void): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "roomd-setup-"));
  try {
    const files = { "install-host": installer, "debian-mirror": debianMirror };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text, { mode: 0o755 });
    // By bash, since a temporary directory may be mounted noexec; with the proxy variables that apt needs.
    await runWithProgress(["env", ...proxies(), "bash", join(directory, "install-host")], (line) => {
      // `roomd doctor` reports packages that are already installed.
      if (line.startsWith("installing ")) note(line);
    });
    return "everything is there";
  } catch (error) {
    throw new CliError(`The host's packages could not be installed: ${error instanceof Error ? error.message : error}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const PROXY = /^(https?|ftp|no)_proxy$/i;

/** Proxy variables of the environment, as arguments of env(1). */
function proxies(): string[] {
  return Object.entries(process.env).flatMap(([name, value]) => (PROXY.test(name) ? [`${name}=${value}`] : []));
}
