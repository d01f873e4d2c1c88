/** The list of operations: the whole interface, once. Transports, documents and sweeping tests are derived from it. */

import * as audit from "./audit.ts";
import * as barriers from "./barriers.ts";
import * as browser from "./browser.ts";
import * as checkpoints from "./checkpoints.ts";
import type { Operation } from "./contract.ts";
import * as drive from "./drive.ts";
import * as egress from "./egress.ts";
import * as executions from "./executions.ts";
import * as fabric from "./fabric.ts";
import * as grants from "./grants.ts";
import * as hosts from "./hosts.ts";
import * as locate from "./locate.ts";
import * as moves from "./moves.ts";
import * as orgs from "./orgs.ts";
import * as live from "./overview/live.ts";
import * as overview from "./overview/overview.ts";
import * as roomOverview from "./overview/room-overview.ts";
import * as top from "./overview/top.ts";
import * as account from "./people/account.ts";
import * as billing from "./people/billing.ts";
import * as credits from "./people/credits.ts";
import * as identities from "./people/identities.ts";
import * as members from "./people/members.ts";
import * as orgEnd from "./people/org-end.ts";
import * as passkeys from "./people/passkeys.ts";
import * as ports from "./ports.ts";
import * as recordings from "./recordings.ts";
import * as roomBackups from "./room-backups.ts";
import * as rooms from "./rooms.ts";
import * as sandboxFiles from "./sandbox-files.ts";
import * as sandboxes from "./sandboxes.ts";
import * as screen from "./screen.ts";
import * as service from "./service.ts";
import * as snapshots from "./snapshots.ts";
import * as ssh from "./ssh.ts";
import * as templateBuilds from "./template-builds.ts";
import * as templates from "./templates.ts";
import * as terminals from "./terminals.ts";
import * as usage from "./usage.ts";
import * as webhooks from "./webhooks.ts";

export const operations = {
  health: service.health,
  metrics: service.metrics,
  config_get: service.configGet,
  me_get: service.meGet,
  locate: locate.locate,
  host_list: hosts.hostList,
  host_evacuate: hosts.hostEvacuate,
  openapi_get: service.openapiGet,
  org_create: orgs.orgCreate,
  org_delete: orgEnd.orgDelete,
  key_create: orgs.keyCreate,
  key_list: orgs.keyList,
  key_rotate: orgs.keyRotate,
  key_revoke: orgs.keyRevoke,
  webhook_create: webhooks.webhookCreate,
  webhook_list: webhooks.webhookList,
  webhook_get: webhooks.webhookGet,
  webhook_update: webhooks.webhookUpdate,
  webhook_delete: webhooks.webhookDelete,
  webhook_rotate: webhooks.webhookRotate,
  webhook_deliveries: webhooks.webhookDeliveries,
  webhook_redeliver: webhooks.webhookRedeliver,
  webhook_test: webhooks.webhookTestSend,
  billing_get: billing.billingGet,
  billing_checkout: billing.billingCheckout,
  billing_portal: billing.billingPortal,
  billing_success: billing.billingSuccess,
  billing_key: billing.billingKey,
  account_get: account.accountGet,
  account_update: account.accountUpdate,
  account_export: account.accountExport,
  account_delete: account.accountDelete,
  session_list: account.sessionList,
  session_end: account.sessionEnd,
  grant_list: grants.grantList,
  grant_create: grants.grantCreate,
  device_decide: grants.deviceDecide,
  grant_end: grants.grantEnd,
  application_list: grants.applicationList,
  application_end: grants.applicationEnd,
  identity_list: identities.identityList,
  identity_begin: identities.identityBegin,
  identity_remove: identities.identityRemove,
  passkey_list: passkeys.passkeyList,
  passkey_options: passkeys.passkeyOptions,
  passkey_add: passkeys.passkeyAdd,
  passkey_remove: passkeys.passkeyRemove,
  member_list: members.memberList,
  member_update: members.memberUpdate,
  member_remove: members.memberRemove,
  invitation_create: members.invitationCreate,
  invitation_list: members.invitationList,
  invitation_delete: members.invitationDelete,
  usage: usage.usage,
  credit_list: credits.creditList,
  top_get: top.topGet,
  room_create: rooms.roomCreate,
  room_list: rooms.roomList,
  room_get: rooms.roomGet,
  room_update: rooms.roomUpdate,
  room_destroy: rooms.roomDestroy,
  sandbox_create: sandboxes.sandboxCreate,
  sandbox_list: sandboxes.sandboxList,
  org_sandbox_list: sandboxes.orgSandboxList,
  sandbox_get: sandboxes.sandboxGet,
  sandbox_update: sandboxes.sandboxUpdate,
  sandbox_destroy: sandboxes.sandboxDestroy,
  sandbox_standby: sandboxes.sandboxStandby,
  sandbox_hibernate: sandboxes.sandboxHibernate,
  sandbox_snapshot: snapshots.snapshotCreate,
  sandbox_fork: snapshots.sandboxFork,
  sandbox_rollback: snapshots.sandboxRollback,
  snapshot_list: snapshots.snapshotList,
  snapshot_get: snapshots.snapshotGet,
  snapshot_delete: snapshots.snapshotDelete,
  room_checkpoint: checkpoints.checkpointCreate,
  checkpoint_list: checkpoints.checkpointList,
  checkpoint_get: checkpoints.checkpointGet,
  checkpoint_delete: checkpoints.checkpointDelete,
  room_fork: checkpoints.roomFork,
  room_restore: checkpoints.roomRestore,
  room_move: moves.roomMove,
  room_backup: roomBackups.roomBackup,
  room_from_backup: roomBackups.roomFromBackup,
  sandbox_resume: sandboxes.sandboxResume,
  sandbox_logs: sandboxes.sandboxLogs,
  sandbox_metrics: sandboxes.sandboxMetrics,
  egress_get: egress.egressGet,
  egress_set: egress.egressSet,
  egress_explain: egress.egressExplain,
  sandbox_network: egress.sandboxNetwork,
  sandbox_exec: executions.sandboxExec,
  sandbox_file_put: sandboxFiles.sandboxFilePut,
  sandbox_file_get: sandboxFiles.sandboxFileGet,
  sandbox_file_list: sandboxFiles.sandboxFileList,
  sandbox_file_stat: sandboxFiles.sandboxFileStat,
  sandbox_file_mkdir: sandboxFiles.sandboxFileMkdir,
  sandbox_file_move: sandboxFiles.sandboxFileMove,
  sandbox_file_delete: sandboxFiles.sandboxFileDelete,
  sandbox_file_watch: sandboxFiles.sandboxFileWatch,
  terminal_create: terminals.terminalCreate,
  terminal_list: terminals.terminalList,
  terminal_get: terminals.terminalGet,
  terminal_watch: terminals.terminalWatch,
  terminal_close: terminals.terminalClose,
  terminal_token: terminals.terminalToken,
  terminal_attach: terminals.terminalAttach,
  screen_get: screen.screenGet,
  computer: screen.computer,
  screen_ticket: screen.screenTicket,
  screen_view: screen.screenView,
  recording_start: recordings.recordingStart,
  recording_list: recordings.recordingList,
  recording_get: recordings.recordingGet,
  recording_stop: recordings.recordingStop,
  recording_delete: recordings.recordingDelete,
  recording_data: recordings.recordingData,
  recording_film: recordings.recordingFilm,
  ssh_access_create: ssh.sshAccessCreate,
  ssh_access_list: ssh.sshAccessList,
  ssh_access_delete: ssh.sshAccessDelete,
  ssh_key_add: ssh.sshKeyAdd,
  ssh_key_list: ssh.sshKeyList,
  ssh_key_remove: ssh.sshKeyRemove,
  sandbox_expose_port: ports.sandboxExposePort,
  sandbox_unexpose_port: ports.sandboxUnexposePort,
  port_list: ports.portList,
  browser_get: browser.browserGet,
  execution_start: executions.executionStart,
  execution_list: executions.executionList,
  execution_get: executions.executionGet,
  execution_stream: executions.executionStream,
  execution_stdin: executions.executionStdin,
  execution_signal: executions.executionSignal,
  execution_end: executions.executionEnd,
  fs_write: drive.fsWrite,
  fs_list: drive.fsList,
  fs_read: drive.fsRead,
  fs_stat: drive.fsStat,
  fs_mkdir: drive.fsMkdir,
  fs_move: drive.fsMove,
  fs_delete: drive.fsDelete,
  file_put: drive.filePut,
  file_get: drive.fileGet,
  agent_send: fabric.agentSend,
  message_send_many: fabric.messageSendMany,
  agent_wait: fabric.agentWait,
  message_get: fabric.messageGet,
  message_ack: fabric.messageAck,
  message_reply: fabric.messageReply,
  agent_subscribe: fabric.agentSubscribe,
  agent_list: fabric.agentList,
  barrier_arrive: barriers.barrierArrive,
  barrier_list: barriers.barrierList,
  barrier_get: barriers.barrierGet,
  barrier_cancel: barriers.barrierCancel,
  room_overview: roomOverview.roomOverview,
  room_waits: overview.roomWaits,
  room_timeline: overview.roomTimeline,
  room_now: live.roomNow,
  live_socket: live.liveSocket,
  template_list: templates.templateList,
  template_get: templates.templateGet,
  template_create: templateBuilds.templateCreate,
  template_remove: templateBuilds.templateRemove,
  template_build_get: templateBuilds.templateBuildGet,
  template_build_stream: templateBuilds.templateBuildStream,
  template_build_end: templateBuilds.templateBuildEnd,
  audit_list: audit.auditList,
  org_audit_list: audit.orgAuditList,
  audit_summary: audit.auditSummary,
  org_audit_summary: audit.orgAuditSummary,
  audit_verify: audit.auditVerify,
  org_audit_verify: audit.orgAuditVerify,
  room_events: audit.roomEvents,
  org_events: audit.orgEvents,
} as const;

/** Features beyond the tools of the MCP layer, in the order of the list; clients check here before they use one. */
export const API_EXTENSIONS: readonly string[] = [
  ...new Set(Object.values<Operation>(operations).flatMap(({ extension = [] }) => extension)),
];
