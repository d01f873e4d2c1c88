/** Operations on webhooks: create, list, change and delete them, and rotate their secrets. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import {
  DEFAULT_ROTATION_SECONDS,
  MAX_WEBHOOKS,
  webhookCreate,
  webhookDelete,
  webhookGet,
  webhookList,
  webhookRotate,
  webhookUpdate,
} from "../../../shared/api/webhooks.ts";
import { isReadingEvent } from "../../../shared/audit-reads.ts";
import { newId } from "../../../shared/ids.ts";
import { readCursor, toPage } from "../../core/call/cursor.ts";
import { actorOf, type Bound, bind, type RuleBreak } from "../../core/call/operation.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import { locally } from "../../db/dry-run.ts";
import type { WebhookDeps } from "./deps.ts";
import { findOrg, findWebhook } from "./find.ts";
import type { Sender } from "./lanes.ts";
import type { ToWebhookRecord } from "./record.ts";
import type { WebhookSecrets } from "./secrets.ts";
import type { SsrfGuard } from "./ssrf-guard.ts";
import {
  changeWebhook,
  countWebhooks,
  deleteOwn,
  deleteWebhook,
  getWebhook,
  insertProgress,
  insertWebhook,
  listWebhooks,
} from "./store.ts";
import { noProgress, type WebhookRow } from "./table.ts";

const CURSOR = "webhooks";

interface WebhookParts {
  sender: Sender;
  reach: SsrfGuard;
  secrets: WebhookSecrets;
  shown: ToWebhookRecord;
}

export function makeConfigure(deps: WebhookDeps, { sender, reach, secrets, shown }: WebhookParts): Bound[] {
  const { chains, directory } = deps;
  const { queries } = deps.database;
  const { database } = directory;
  const rules = ({ url, types = [] }: { url?: string | undefined; types?: string[] | undefined }): RuleBreak[] => {
    const refusal = url === undefined ? null : reach.refusalOf(url);
    const ofUrl = refusal === null ? [] : [{ field: "url", code: "invalid_url", message: `url ${refusal}.` }];
    const reading = types.findIndex((type) => isReadingEvent(type));
    const field = `types[${reading}]`;
    const ofTypes = { field, code: "not_sent", message: `${field} is an event of calls that only read.` };
    return reading === -1 ? ofUrl : [...ofUrl, ofTypes];
  };
  /** Throws webhook_not_found: another call has just deleted it. */
  const known = (row: WebhookRow | undefined): WebhookRow => {
    if (!row) throw new ServiceError("webhook_not_found");
    return row;
  };
  /** Details for the audit record. The part of a URL after the host is often a secret of the receiver. */
  const factsOf = (row: WebhookRow): Record<string, unknown> => {
    const { webhook_id, types, room_ids, disabled_reason } = row;
    const url = secrets.urlOf(row);
    const host = url === null ? null : new URL(url).host;
    return { webhook_id, host, types, room_ids, enabled: disabled_reason === null };
  };
  return [
    bind(webhookCreate, {
      find: (call, params) => findOrg(deps, call, params),
      rules,
      run: async (call, { url, types, room_ids = null, enabled = true }, org_id) => {
        const { type, id } = actorOf(call.caller);
        const created_at = now();
        const webhook_id = newId("whk");
        const body = await sender.change(org_id, webhook_id, () =>
          database.commit((within) => {
            if (countWebhooks(within, org_id) >= MAX_WEBHOOKS) {
              throw new ServiceError("quota_exceeded", {
                detail: `An organization may have ${MAX_WEBHOOKS} webhooks.`,
              });
            }
            const row: WebhookRow = {
              ...{ webhook_id, org_id, sealed_url: secrets.seal(webhook_id, url), types, room_ids },
              ...{ secret_number: 1, former_until: null, ...disabling(enabled, created_at) },
              ...{ created_at, created_by_type: type, created_by_id: id, updated_at: created_at },
              ...{ renewed_at: created_at, begins_at: created_at },
            };
            insertWebhook(within, row);
            locally(within, (here) =>
              insertProgress(here, { webhook_id, ...noProgress(chains.head(org_id)), renewed_at: created_at }),
            );
            const made = { ...shown(row), behind_count: 0, secret: secrets.of(row) };
            call.audit.details = factsOf(row);
            call.work.keep("created", made);
            return made;
          }),
        );
        return { outcome: "created", body };
      },
    }),

    bind(webhookList, {
      find: (call, params) => findOrg(deps, call, params),
      run: (_call, { limit = DEFAULT_PAGE, cursor }, orgId) => {
        const found = listWebhooks(queries, orgId, readCursor(CURSOR, cursor), limit + 1);
        const { rows, next_cursor } = toPage(CURSOR, found, limit, (row) => row.webhook_id);
        return { outcome: "ok", body: { items: rows.map(shown), next_cursor } };
      },
    }),

    bind(webhookGet, {
      find: (call, params) => findWebhook(deps, call, params),
      run: (_call, _input, row) => ({ outcome: "ok", body: shown(row) }),
    }),

    bind(webhookUpdate, {
      find: (call, params) => findWebhook(deps, call, params),
      rules,
      run: async (call, { url, types, room_ids, enabled }, { org_id, webhook_id }) => {
        call.audit.details = { webhook_id };
        const updated_at = now();
        // A new or repaired receiver has its 5 days from now on, and so have waiting events.
        const beginsAnew = url !== undefined || enabled === true;
        const change: Partial<WebhookRow> = {
          ...(url === undefined ? {} : { sealed_url: secrets.seal(webhook_id, url) }),
          ...(types === undefined ? {} : { types }),
          ...(room_ids === undefined ? {} : { room_ids }),
          ...(enabled === undefined ? {} : disabling(enabled, updated_at)),
          ...(beginsAnew ? { renewed_at: updated_at } : {}),
          updated_at,
        };
        const row = await sender.change(org_id, webhook_id, () =>
          database.commit((within) => {
            const before = known(getWebhook(within, org_id, webhook_id));
            const { type: created_by_type, id: created_by_id } = actorOf(call.caller);
            // The caller takes over a webhook without a valid maker.
            const isTakenOver = enabled === true && !deps.isMakerGood(before);
            const maker = isTakenOver ? { created_by_type, created_by_id } : {};
            const changed = known(changeWebhook(within, webhook_id, { ...change, ...maker }));
            call.audit.details = factsOf(changed);
            return changed;
          }),
        );
        return { outcome: "ok", body: shown(row) };
      },
    }),

    bind(webhookDelete, {
      find: (call, params) => findWebhook(deps, call, params),
      run: async (call, _input, { org_id, webhook_id }) => {
        call.audit.details = { webhook_id };
        await sender.change(org_id, webhook_id, () =>
          database.commit((within) => {
            deleteWebhook(within, webhook_id);
            locally(within, (here) => deleteOwn(here, webhook_id));
          }),
        );
        return { outcome: "ok", body: { webhook_id, state: "deleted" as const } };
      },
    }),

    bind(webhookRotate, {
      find: (call, params) => findWebhook(deps, call, params),
      run: async (call, { grace_seconds = DEFAULT_ROTATION_SECONDS }, { org_id, webhook_id }) => {
        call.audit.details = { webhook_id, grace_seconds };
        const updated_at = now();
        const former_until = grace_seconds === 0 ? null : after(updated_at, grace_seconds);
        const body = await sender.change(org_id, webhook_id, () =>
          database.commit((within) => {
            const { secret_number: former } = known(changeWebhook(within, webhook_id, { former_until, updated_at }));
            const row = known(changeWebhook(within, webhook_id, { secret_number: former + 1 }));
            const made = { ...shown(row), secret: secrets.of(row) };
            call.work.keep("created", made);
            return made;
          }),
        );
        return { outcome: "created", body };
      },
    }),
  ];
}

function disabling(enabled: boolean, at: string): Pick<WebhookRow, "disabled_reason" | "disabled_at"> {
  return enabled ? { disabled_reason: null, disabled_at: null } : { disabled_reason: "by_request", disabled_at: at };
}
