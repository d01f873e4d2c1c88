/**
 * Network in which an organization's image is fetched: a separate network namespace with no way out except through the daemon, which
 * decides on each target. So a registry's redirects and sign-in URLs do not lead into the operator's networks.
 */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { withoutNetwork } from "../../../host/isolation/argv.ts";
import { FETCH_RELAY } from "../../../host/own-processes.ts";

/** Printed if the network could not be made. */
export const NO_NETWORK = "failed to create the network in which images are fetched";
const ENTER = `ip link set lo up || { echo '${NO_NETWORK}' >&2; exit 1; }; exec "$@"`;
/** Port of the proxy; the network has no other users. */
const PROXY_PORT = 3128;
const OTHER_PORT = 3129;
/** Maximum that are reported. */
const MAX_REFUSED = 16;

export interface FetchNetwork extends AsyncDisposable {
  /** Command that runs the same program in the network. */
  within(argv: readonly string[]): string[];
  /** HOST:PORT of refused connections. */
  refused: ReadonlySet<string>;
}

/** Opens a proxy on a socket at this path, which decides on each target; `refused` is called with each refused HOST:PORT. */
export type OpenTunnels = (path: string, refused: (target: string) => void) => Promise<AsyncDisposable>;

/** `registry` is HOST:PORT; if that is on this host, programs connect to it directly, whatever their proxy settings. */
export async function openFetchNetwork(
  directory: string,
  registry: string | null,
  openTunnels: OpenTunnels,
): Promise<FetchNetwork> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const refused = new Set<string>();
  const path = join(directory, "net");
  const tunnels = await openTunnels(path, (target) => {
    if (refused.size < MAX_REFUSED) refused.add(target);
  });
  const own = /^(?:localhost|127\.0\.0\.1):(\d+)$/.exec(registry ?? "")?.[1];
  const port = Number(own) === PROXY_PORT ? OTHER_PORT : PROXY_PORT;
  const proxy = `http://127.0.0.1:${port}`;
  const relay = [process.execPath, FETCH_RELAY, path, String(port), own === undefined ? "-" : (registry ?? "-")];
  return {
    refused,
    within: (argv) =>
      withoutNetwork([
        ...["setpriv", "--pdeathsig=KILL", "sh", "-c", ENTER, "sh"],
        ...[...relay, "env", `HTTPS_PROXY=${proxy}`, `HTTP_PROXY=${proxy}`, ...argv],
      ]),
    [Symbol.asyncDispose]: async () => {
      await tunnels[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
