/**
 * Operations of the SSH transport: a login, and the channels of a session. Each one passes the pipeline separately, so that key, scope,
 * room and sandbox are checked for every channel. The opened channel is passed to `take`.
 */
import type { WakeReason } from "../../../shared/api/sandboxes.ts";
import { sshExec, sshForward, sshLogin, sshSftp, sshShell } from "../../../shared/api/ssh.ts";
import { newId } from "../../../shared/ids.ts";
import type { AuditFacts } from "../../core/call/audit-facts.ts";
import type { Bound, KeyCall } from "../../core/call/operation.ts";
import { bind, trialCall } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { type LiveCommand, startCommand } from "../../host/guest-link/command.ts";
import { connectInGuest, connectToSocket, type GuestPort } from "../../host/guest-link/connect.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { redact } from "../sandboxes/executions/run/redact.ts";
import type { Credential } from "./credentials.ts";
import type { SshDeps } from "./deps.ts";
import { asServiceError } from "./errors.ts";
import { commandOf, SFTP_SERVER, SHELL } from "./guest-commands.ts";
import { openScreen } from "./screen.ts";

export interface LoggedIn {
  sandbox_id: string;
  facts: AuditFacts;
}

export interface SshVerbs {
  /** Whether a credential is sufficient for this sandbox; records nothing. */
  opens(credential: Credential, params: Record<string, string>): boolean;
  login(credential: Credential, client: string, take: (session: LoggedIn) => void): Bound;
  exec(session: HeldSandbox, take: (command: LiveCommand) => void): Bound;
  shell(session: HeldSandbox, take: (command: LiveCommand) => void): Bound;
  sftp(session: HeldSandbox, take: (command: LiveCommand) => void): Bound;
  forward(session: HeldSandbox, take: (port: GuestPort) => void): Bound;
}

/** Sandbox and credential of a session. */
export interface HeldSandbox {
  sandbox_id: string;
  credential: Credential;
}

export function makeVerbs({ sandboxes, sit }: Pick<SshDeps, "sandboxes" | "sit">): SshVerbs {
  const find = (call: KeyCall, params: Record<string, string>, only: string | null, credential: Credential) => {
    const target = sandboxes.find(call, params);
    if (only !== null && target.row.sandbox_id !== only) throw new ServiceError("sandbox_not_found");
    call.audit.details = { method: credential.kind, credential_id: credential.id };
    return target;
  };
  const within = ({ sandbox_id, credential }: HeldSandbox) => ({
    find: (call: KeyCall, params: Record<string, string>) => find(call, params, sandbox_id, credential),
  });
  type Target = ReturnType<typeof find>;
  /** Keeps the sandbox in use until the opened channel ends. */
  const open = async <T extends { ended: Promise<unknown> }>(
    target: Target,
    work: (link: GuestLink) => Promise<T>,
    reason?: WakeReason,
  ) => {
    const opened = await sandboxes.withLink(target, (link) => work(link).catch(asServiceError), reason);
    const over = opened.ended.then(
      () => {},
      () => {},
    );
    void sandboxes.use(target.row.sandbox_id, () => over);
    return opened;
  };
  const exec_id = () => newId("exe");
  const sitAt =
    ({ row }: Target, { credential }: HeldSandbox) =>
    (terminalId: string) =>
      sit(row.sandbox_id, terminalId, credential.caller.name);

  return {
    opens: (credential, params) => {
      try {
        find(trialCall(credential.caller), params, credential.sandbox_id, credential);
        return true;
      } catch {
        return false;
      }
    },
    login: (credential, client, take) =>
      bind(sshLogin, {
        find: (call, params) => find(call, params, credential.sandbox_id, credential),
        run: ({ audit }, _, { row }) => {
          audit.details = { ...audit.details, client };
          take({ sandbox_id: row.sandbox_id, facts: { ...audit, details: {} } });
          return { outcome: "ok", body: {} };
        },
      }),
    exec: (session, take) =>
      bind(sshExec, {
        ...within(session),
        run: async ({ audit }, { command, env, screen }, target: Target) => {
          audit.details = { ...audit.details, command: redact([command])[0], screen: screen !== null };
          const argv = commandOf(command);
          take(
            await open(target, (link) =>
              screen
                ? openScreen(link, argv, env, screen, sitAt(target, session))
                : startCommand(link, { exec_id: exec_id(), argv, env }),
            ),
          );
          return { outcome: "ok", body: {} };
        },
      }),
    shell: (session, take) =>
      bind(sshShell, {
        ...within(session),
        run: async ({ audit }, { env, screen }, target: Target) => {
          audit.details = { ...audit.details, screen: screen !== null };
          const shell = (link: GuestLink) =>
            screen
              ? openScreen(link, null, env, screen, sitAt(target, session))
              : startCommand(link, { exec_id: exec_id(), argv: SHELL, env });
          take(await open(target, shell, "terminal"));
          return { outcome: "ok", body: {} };
        },
      }),
    sftp: (session, take) =>
      bind(sshSftp, {
        ...within(session),
        run: async (_, __, target: Target) => {
          take(await open(target, (link) => startCommand(link, { exec_id: exec_id(), argv: SFTP_SERVER, env: {} })));
          return { outcome: "ok", body: {} };
        },
      }),
    forward: (session, take) =>
      bind(sshForward, {
        ...within(session),
        rules: ({ host, port, path }) => {
          if (path !== undefined) return host === undefined && port === undefined ? [] : [both("path")];
          if (host === undefined || port === undefined) return [both("host")];
          const message = `Only the sandbox's own loopback can be connected to, not ${host}: connect from a program in the sandbox.`;
          return isLoopback(host) ? [] : [{ field: "host", code: "source_mismatch", message }];
        },
        run: async ({ audit }, { host, port, path }, target: Target) => {
          audit.details = { ...audit.details, ...(path === undefined ? { host, port } : { path }) };
          const connect = (link: GuestLink) =>
            path === undefined ? connectInGuest(link, port ?? 0) : connectToSocket(link, path);
          take(await open(target, connect));
          return { outcome: "ok", body: {} };
        },
      }),
  };
}

const both = (field: string) => ({
  ...{ field, code: "validation_failed" as const, message: "A forwarding needs a host and a port, or a path." },
});

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}
