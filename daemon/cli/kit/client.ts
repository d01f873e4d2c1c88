/**
 * The command line's client of the service: the SDK with this user's connection, a progress line, and every failure as a CliError. A call
 * to a service that is down fails immediately: only an interrupted call is retried.
 */
import {
  Client,
  type Download,
  type DownloadOptions,
  type Input,
  type OperationName,
  type Reply,
  type Result,
  type StreamName,
} from "../../../sdk/typescript/src/client.ts";
import type { EventOptions } from "../../../sdk/typescript/src/stream.ts";
import type { CallOptions, FileBody, Retry } from "../../../sdk/typescript/src/transport.ts";
import type { InputOf, Operation, OutputOf } from "../../../shared/api/contract.ts";
import { VERSION } from "../../../shared/version.ts";
import type { TokenEndpoint } from "../commands/account/token-endpoint.ts";
import { CliError, EXIT, toCliError } from "./cli-error.ts";
import { findConnection, placeOf } from "./connection.ts";
import { withProgress } from "./progress.ts";

/** An input whose optional fields may also be undefined, as unused options of a command are. */
type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

/** The service has its own deadlines, and its reads and builds may take long. */
const PATIENT = { timeoutMs: Number.POSITIVE_INFINITY, silentMs: 600_000 };

/** Longer than a restart of the service takes; a service that is down fails the command after it. */
const RESTART_MS = 3000;

/** For calls that continue work in progress: a restarted service comes back. */
export const LASTING: Retry = { after: "any", forMs: 120_000 };

/** Calls an operation that answers with JSON. Throws CliError. */
export function call<Op extends Operation>(
  operation: Op,
  input: Loose<InputOf<Op>>,
  options: CallOptions & { body?: FileBody } = {},
): Promise<Reply<OutputOf<Op>>> {
  return asked(operation, (client) =>
    client.reply(operation.name as OperationName, input as never, { ...PATIENT, ...options }),
  ) as Promise<Reply<OutputOf<Op>>>;
}

/** A file or another non-JSON response, as a stream. Throws CliError during the request, and the SDK's errors during the transfer. */
export function download<Op extends Operation>(
  operation: Op,
  input: Loose<InputOf<Op>>,
  options: DownloadOptions = {},
): Promise<Download> {
  return asked(operation, (client) =>
    client.download(operation.name as OperationName, input, { ...PATIENT, ...options }),
  );
}

/** The events of a stream, resumed after a disconnect. Throws the SDK's errors. */
export async function* events<Name extends StreamName>(
  operation: Operation & { name: Name },
  input: Loose<Input<Name>>,
  options: EventOptions = {},
): AsyncGenerator<Exclude<Result<Name>, { type: "ping" | "error" }>> {
  yield* sdk(operation).events(operation.name, input as Input<Name>, options);
}

/**
 * The SDK's client for this operation; each attempt throws CliError if the operation requires credentials and the user is not signed in.
 */
export function sdk({ access, openToHost }: Operation): Client {
  const place = placeOf();
  const wantsKey = access !== "open" && openToHost !== true;
  const name = JSON.stringify([place, wantsKey]);
  const client = clients.get(name) ?? makeClient(place, wantsKey);
  clients.set(name, client);
  return client;
}

/** They keep their connections. */
const clients = new Map<string, Client>();

function makeClient({ url, ca }: TokenEndpoint, wantsKey: boolean): Client {
  return new Client({
    url,
    ...(ca === null ? {} : { ca }),
    // The token of a signed-in user changes every hour, and the owner of the port may change when the service restarts.
    apiKey: async () => {
      const { key } = await findConnection();
      if (key === null && wantsKey) throw noKey();
      return key;
    },
    userAgent: `roomd-cli/${VERSION}`,
    proxyEnv: process.env,
    retry: { after: "interrupted", forMs: RESTART_MS },
  });
}

function noKey(): CliError {
  const hint =
    "`roomd login` signs you in. `roomd init` prints the first key, and `roomd key create` makes more. `roomd setup` keeps its key in setup.env in data_dir.";
  return new CliError({ detail: "ROOMD_API_KEY is not set.", errors: [], hint }, EXIT.usage);
}

async function asked<T>(operation: Operation, work: (client: Client) => Promise<T>): Promise<T> {
  try {
    return await withProgress(waitFor(operation), () => work(sdk(operation)));
  } catch (error) {
    throw toCliError(error);
  }
}

/** Default progress text for a call. */
function waitFor({ summary }: Operation): string {
  return `waiting for the service: ${summary.slice(0, 1).toLowerCase()}${summary.slice(1)}`;
}
