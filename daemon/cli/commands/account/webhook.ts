/** `roomd webhook`: URLs to which the organization's events are sent, and the state of their deliveries. */

import type { Command } from "commander";
import {
  DEFAULT_ROTATION_SECONDS,
  type WebhookRecord,
  webhookCreate,
  webhookDelete,
  webhookDeliveries,
  webhookGet,
  webhookList,
  webhookRedeliver,
  webhookRotate,
  webhookTestSend,
  webhookUpdate,
} from "../../../../shared/api/webhooks.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, show } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { secondsOrZero, word } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";

/** That of the key. */
const org_id = "self";
const WEBHOOK = "whk_01KG9YXD6P9R2T4W7Y0A3C5E8H";
const EVENT = "evt_01KG9Z2CF0H8K2N5R7T3W6Y9BD";

export function webhookCommand(setStatus: (status: number) => void): Command {
  return commandGroup("webhook", {
    summary: "URLs to which the organization's events are sent",
    examples: [
      "roomd webhook create https://example.org/hooks/roomd --type sandbox. --type room.",
      `roomd webhook test ${WEBHOOK}`,
      `roomd webhook deliveries ${WEBHOOK}`,
    ],
  })
    .addCommand(create())
    .addCommand(
      verb(webhookList, "list", "list the organization's webhooks", {
        examples: ["roomd webhook list", "roomd webhook list --json"],
        fixed: { org_id },
        lines: columns(
          ["WEBHOOK", (each) => each.webhook_id],
          ["URL", (each) => each.url],
          ["TYPES", (each) => each.types.join(" ")],
          ["ROOMS", (each) => each.room_ids?.join(" ") ?? "all"],
          ["STATE", stateOf],
          ["SENT", (each) => each.sent_count],
          ["WAITING", (each) => each.waiting_count],
          ["LAST SENT", (each) => each.last_sent_at],
        ),
      }),
    )
    .addCommand(
      verb(webhookGet, "get <webhook>", "show a webhook's record", {
        examples: [`roomd webhook get ${WEBHOOK}`],
        fixed: { org_id },
        lines: recordLines,
      }),
    )
    .addCommand(update())
    .addCommand(
      verb(webhookDelete, "delete <webhook>", "delete a webhook; undelivered events are dropped", {
        examples: [`roomd webhook delete ${WEBHOOK}`],
        fixed: { org_id },
        lines: (done) => [`webhook ${done.webhook_id} is ${done.state}`],
      }),
    )
    .addCommand(
      verb(webhookRotate, "rotate <webhook>", "replace a webhook's secret; both sign during the grace period", {
        examples: [`roomd webhook rotate ${WEBHOOK}`, `roomd webhook rotate ${WEBHOOK} --grace 0s`],
        options: [["--grace <time>", "how long the previous secret signs too (default: 1d)", secondsOrZero]],
        fixed: { org_id, grace_seconds: DEFAULT_ROTATION_SECONDS },
        lines: fieldLines,
      }),
    )
    .addCommand(
      verb(webhookDeliveries, "deliveries <webhook>", "list failed and retried deliveries", {
        examples: [`roomd webhook deliveries ${WEBHOOK}`, `roomd webhook deliveries ${WEBHOOK} --limit 10 --json`],
        fixed: { org_id },
        lines: columns(
          ["EVENT", (each) => each.delivery_id],
          ["TYPE", (each) => each.type],
          ["STATE", (each) => each.state],
          ["TRIES", (each) => each.attempts],
          ["STATUS", (each) => each.status],
          ["NEXT", (each) => each.next_at],
          ["ERROR", (each) => each.error],
        ),
      }),
    )
    .addCommand(
      verb(webhookRedeliver, "redeliver <webhook> <event>", "resend an event, even if it was delivered", {
        examples: [`roomd webhook redeliver ${WEBHOOK} ${EVENT}`],
        fields: { event: "delivery_id" },
        fixed: { org_id },
        lines: (event) => [`${event.type} ${event.delivery_id} is sent again`],
      }),
    )
    .addCommand(test(setStatus));
}

interface WebhookOptions extends JsonOption {
  type?: string[];
  room?: string[];
}

function create(): Command {
  return command("create <url>", {
    summary: "send events to a URL from now on; the secret that signs them is shown once",
    examples: [
      "roomd webhook create https://example.org/hooks/roomd --type sandbox. --type message.sent",
      "roomd webhook create https://example.org/hooks/roomd --type '*' --room build-42 --disabled",
    ],
  })
    .requiredOption("--type <type>", "prefix of the events' names, or * for all; repeatable", word)
    .option("--room <room>", "only events of this room; repeatable", word)
    .option("--disabled", "create it disabled")
    .action(async (url: string, { type = [], room, disabled, json }: WebhookOptions & { disabled?: boolean }) => {
      const input = { org_id, url, types: type, room_ids: room, enabled: disabled ? false : undefined };
      await show(await call(webhookCreate, input), { json }, fieldLines);
    });
}

const stateOf = ({ enabled, disabled_reason, failing_since }: WebhookRecord): string =>
  enabled ? (failing_since === null ? "enabled" : "failing") : `disabled: ${disabled_reason}`;

interface UpdateOptions extends WebhookOptions {
  url?: string;
  allRooms?: boolean;
  enable?: boolean;
  disable?: boolean;
}

function update(): Command {
  return command("update <webhook>", {
    summary: "change a webhook; when re-enabled it resumes where it stopped",
    examples: [
      `roomd webhook update ${WEBHOOK} --enable`,
      `roomd webhook update ${WEBHOOK} --url https://example.org/hooks/other --type room. --all-rooms`,
    ],
  })
    .option("--url <url>", "send to this URL")
    .option("--type <type>", "send only these events; repeatable", word)
    .option("--room <room>", "send only events of this room; repeatable", word)
    .option("--all-rooms", "send events of all rooms, and of none")
    .option("--enable", "send events again")
    .option("--disable", "send nothing until it is enabled again")
    .action(async (webhook_id: string, { url, type, room, allRooms, enable, disable, json }: UpdateOptions) => {
      if (enable && disable) throw new CliError("--enable and --disable cannot both be given.", EXIT.usage);
      if (room && allRooms) throw new CliError("--room and --all-rooms cannot both be given.", EXIT.usage);
      const enabled = enable ? true : disable ? false : undefined;
      const room_ids = allRooms ? null : room;
      const reply = await call(webhookUpdate, { org_id, webhook_id, url, types: type, room_ids, enabled });
      await show(reply, { json }, fieldLines);
    });
}

/** Exits with the status of a refusal if the receiver rejects the event. */
function test(setStatus: (status: number) => void): Command {
  return command("test <webhook>", {
    summary: "send a test event, and print the receiver's response; exit status 1 if it was not accepted",
    examples: [`roomd webhook test ${WEBHOOK}`],
  }).action(async (webhook_id: string, options: JsonOption) => {
    const reply = await call(webhookTestSend, { org_id, webhook_id });
    if (!reply.value.delivered) setStatus(EXIT.refused);
    await show(reply, options, ({ delivered, status, error, duration_ms }) => [
      delivered
        ? `The receiver accepted it: ${status}, after ${duration_ms} ms.`
        : `The receiver did not accept it. ${error}`,
    ]);
  });
}
