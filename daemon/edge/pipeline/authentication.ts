/**
 * Authentication of callers: by API key, by a noun's own token, or by the transport. Invalid credentials are audited; an address that sends
 * too many gets 429. API keys are looked up in domain/orgs/keys.ts.
 */
import type { Source } from "../../../shared/api/audit.ts";
import type { Access } from "../../../shared/api/contract.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Database } from "../../db/transact.ts";
import { FailedLogins } from "./failed-logins.ts";
import { LoginLimit } from "./login-limit.ts";
import type { Placement } from "./placement.ts";
import type { PipelineRequest } from "./request-context.ts";

export type Credentials = Pick<PipelineRequest, "authorization" | "recognise" | "source" | "request_id" | "ip">;

export interface AuthenticationDeps {
  /**
   * By API key, or by an application's token, which is valid for the resource it was issued for. Throws missing_credentials,
   * invalid_api_key, api_key_expired.
   */
  authenticate(authorization: string | null, source: Source, access?: Access): Caller;
  database: Database;
  log: Log;
  placement: Pick<Placement, "requireFresh">;
  /** Limit per address; 0: unlimited. */
  failedLoginsPerMinute: number;
}

export class Authentication {
  readonly #authenticate: AuthenticationDeps["authenticate"];
  readonly #placement: AuthenticationDeps["placement"];
  readonly #failedLogins: FailedLogins;
  readonly #loginLimit: LoginLimit;

  constructor({ authenticate, placement, database, log, failedLoginsPerMinute }: AuthenticationDeps) {
    this.#authenticate = authenticate;
    this.#placement = placement;
    this.#failedLogins = new FailedLogins(database, log);
    this.#loginLimit = new LoginLimit(failedLoginsPerMinute);
  }

  /** Null: anonymous, and the operation needs no caller. Throws as authenticate does, and rate_limited. */
  of({ admit, operation }: Bound, request: PipelineRequest): Caller | null {
    const { access, openToHost, openToOperator } = operation;
    const { token, authorization, params, recognise } = request;
    if (access === "open") return this.#anyone(request);
    // A signed-in user is the caller even if the browser runs on this host.
    if (openToHost && authorization === null && !request.recognise && request.isFromHost) return null;
    if (recognise) return this.identify(request, recognise);
    return admit && token !== null && authorization === null
      ? this.identify(request, () => admit(token, params))
      : this.identify(request, () =>
          this.#authenticate(authorization, request.source, openToOperator ? "operator" : access),
        );
  }

  /** Throws as authenticate does, and rate_limited. */
  identify(
    request: Credentials,
    admit = request.recognise ?? (() => this.#authenticate(request.authorization, request.source)),
  ): Caller {
    const caller = this.#admitted(request, admit);
    // A guest's token is valid on this host alone.
    if (caller.kind !== "sandbox") this.#placement.requireFresh();
    return caller;
  }

  #admitted(request: Credentials, admit: () => Caller): Caller {
    try {
      return admit();
    } catch (error) {
      if (error instanceof ServiceError && error.code !== "missing_credentials") {
        const { source, request_id, ip } = request;
        this.#failedLogins.note({ source, request_id, ip, error_code: error.code });
        this.#loginLimit.fail(ip);
      }
      throw error;
    }
  }

  /** Throws rate_limited if the address has failed too often. */
  requireAttempt(ip: string | null): void {
    this.#loginLimit.require(ip);
  }

  /** Open operations are answered to anonymous callers; with a valid key the response contains more. */
  #anyone(request: PipelineRequest): Caller | null {
    try {
      return request.authorization === null
        ? null
        : this.identify(request, () => this.#authenticate(request.authorization, request.source));
    } catch {
      return null;
    }
  }

  /** Resolves when the failed logins recorded so far are on disk. Never rejects. */
  get failuresWritten(): Promise<unknown> {
    return this.#failedLogins.written;
  }

  /** Records the failures that were only counted so far. */
  settle(): void {
    this.#failedLogins.settle();
  }
}
