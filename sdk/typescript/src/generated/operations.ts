// Made by generate.ts from the OpenAPI document: change that instead.
import type * as s from "./schemas.ts";

/** Input of each operation, from path, query and body, and its output; for a stream, each event. */
export interface Operations {
  /** Whether the service is ready. */
  health: { input: s.HealthInput; answer: s.HealthAnswer };
  /** Figures of the host and the service for Prometheus. */
  metrics: { input: s.MetricsInput; answer: string };
  /** Show limits, defaults and guarantees. */
  config_get: { input: s.ConfigGetInput; answer: s.ConfigGetAnswer };
  /** Get the caller's API key. */
  me_get: { input: s.MeGetInput; answer: s.MeGetAnswer };
  /** Find the resource with an id. */
  locate: { input: s.LocateInput; answer: s.LocateAnswer };
  /** List the hosts of the service. */
  host_list: { input: s.HostListInput; answer: s.HostListAnswer };
  /** Move one room of a host to another host. */
  host_evacuate: { input: s.HostEvacuateInput; answer: s.HostEvacuateAnswer };
  /** This interface as OpenAPI 3.1. */
  openapi_get: { input: s.OpenapiGetInput; answer: s.OpenapiGetAnswer };
  /** Create an organization. */
  org_create: { input: s.OrgCreateInput; answer: s.OrgCreateAnswer };
  /** End an organization. */
  org_delete: { input: s.OrgDeleteInput; answer: s.OrgDeleteAnswer };
  /** Create an API key. */
  key_create: { input: s.KeyCreateInput; answer: s.KeyCreateAnswer };
  /** List the organization's API keys. */
  key_list: { input: s.KeyListInput; answer: s.KeyListAnswer };
  /** Replace an API key. */
  key_rotate: { input: s.KeyRotateInput; answer: s.KeyRotateAnswer };
  /** Revoke an API key. */
  key_revoke: { input: s.KeyRevokeInput; answer: s.KeyRevokeAnswer };
  /** Create a webhook. */
  webhook_create: { input: s.WebhookCreateInput; answer: s.WebhookCreateAnswer };
  /** List the organization's webhooks. */
  webhook_list: { input: s.WebhookListInput; answer: s.WebhookListAnswer };
  /** Get a webhook. */
  webhook_get: { input: s.WebhookGetInput; answer: s.WebhookGetAnswer };
  /** Change a webhook. */
  webhook_update: { input: s.WebhookUpdateInput; answer: s.WebhookUpdateAnswer };
  /** Delete a webhook. */
  webhook_delete: { input: s.WebhookDeleteInput; answer: s.WebhookDeleteAnswer };
  /** Replace a webhook's secret. */
  webhook_rotate: { input: s.WebhookRotateInput; answer: s.WebhookRotateAnswer };
  /** List a webhook's failed and retried deliveries. */
  webhook_deliveries: { input: s.WebhookDeliveriesInput; answer: s.WebhookDeliveriesAnswer };
  /** Send an event again. */
  webhook_redeliver: { input: s.WebhookRedeliverInput; answer: s.WebhookRedeliverAnswer };
  /** Send a test event. */
  webhook_test: { input: s.WebhookTestInput; answer: s.WebhookTestAnswer };
  /** Show the organization's plan and subscription. */
  billing_get: { input: s.BillingGetInput; answer: s.BillingGetAnswer };
  /** Start a checkout for plan starter. */
  billing_checkout: { input: s.BillingCheckoutInput; answer: s.BillingCheckoutAnswer };
  /** Open cards, invoices and cancellation of a subscription. */
  billing_portal: { input: s.BillingPortalInput; answer: s.BillingPortalAnswer };
  /** Show the result of a checkout. */
  billing_success: { input: s.BillingSuccessInput; answer: s.BillingSuccessAnswer };
  /** Create the key that comes with a checkout. */
  billing_key: { input: s.BillingKeyInput; answer: s.BillingKeyAnswer };
  /** Show the signed-in person. */
  account_get: { input: s.AccountGetInput; answer: s.AccountGetAnswer };
  /** Change one's name, or the session's organization. */
  account_update: { input: s.AccountUpdateInput; answer: s.AccountUpdateAnswer };
  /** Delete one's account. */
  account_delete: { input: s.AccountDeleteInput; answer: s.AccountDeleteAnswer };
  /** Show all data stored about oneself. */
  account_export: { input: s.AccountExportInput; answer: s.AccountExportAnswer };
  /** List one's sessions. */
  session_list: { input: s.SessionListInput; answer: s.SessionListAnswer };
  /** End a session. */
  session_end: { input: s.SessionEndInput; answer: s.SessionEndAnswer };
  /** List the applications that one has authorized. */
  grant_list: { input: s.GrantListInput; answer: s.GrantListAnswer };
  /** Authorize an application at /authorize. */
  grant_create: { input: s.GrantCreateInput; answer: s.GrantCreateAnswer };
  /** Approve or reject an application that shows a code. */
  device_decide: { input: s.DeviceDecideInput; answer: s.DeviceDecideAnswer };
  /** Revoke an application's access. */
  grant_end: { input: s.GrantEndInput; answer: s.GrantEndAnswer };
  /** List the applications that members have authorized. */
  application_list: { input: s.ApplicationListInput; answer: s.ApplicationListAnswer };
  /** Revoke the access of a member's application. */
  application_end: { input: s.ApplicationEndInput; answer: s.ApplicationEndAnswer };
  /** List one's external accounts. */
  identity_list: { input: s.IdentityListInput; answer: s.IdentityListAnswer };
  /** Start linking an external account. */
  identity_begin: { input: s.IdentityBeginInput; answer: s.IdentityBeginAnswer };
  /** Unlink an external account. */
  identity_remove: { input: s.IdentityRemoveInput; answer: s.IdentityRemoveAnswer };
  /** List one's passkeys. */
  passkey_list: { input: s.PasskeyListInput; answer: s.PasskeyListAnswer };
  /** Add a passkey. */
  passkey_add: { input: s.PasskeyAddInput; answer: s.PasskeyAddAnswer };
  /** Start creating a passkey. */
  passkey_options: { input: s.PasskeyOptionsInput; answer: s.PasskeyOptionsAnswer };
  /** Remove a passkey. */
  passkey_remove: { input: s.PasskeyRemoveInput; answer: s.PasskeyRemoveAnswer };
  /** List the organization's members. */
  member_list: { input: s.MemberListInput; answer: s.MemberListAnswer };
  /** Change a member's role. */
  member_update: { input: s.MemberUpdateInput; answer: s.MemberUpdateAnswer };
  /** Remove a member. */
  member_remove: { input: s.MemberRemoveInput; answer: s.MemberRemoveAnswer };
  /** Invite a person. */
  invitation_create: { input: s.InvitationCreateInput; answer: s.InvitationCreateAnswer };
  /** List the pending invitations. */
  invitation_list: { input: s.InvitationListInput; answer: s.InvitationListAnswer };
  /** Withdraw an invitation. */
  invitation_delete: { input: s.InvitationDeleteInput; answer: s.InvitationDeleteAnswer };
  /** Show the organization's usage. */
  usage: { input: s.UsageInput; answer: s.UsageAnswer };
  /** List credits granted and spent. */
  credit_list: { input: s.CreditListInput; answer: s.CreditListAnswer };
  /** Show the current resource usage of sandboxes. */
  top_get: { input: s.TopGetInput; answer: s.TopGetAnswer };
  /** Create a room. */
  room_create: { input: s.RoomCreateInput; answer: s.RoomCreateAnswer };
  /** List rooms. */
  room_list: { input: s.RoomListInput; answer: s.RoomListAnswer };
  /** Get a room. */
  room_get: { input: s.RoomGetInput; answer: s.RoomGetAnswer };
  /** Change a room's labels and end. */
  room_update: { input: s.RoomUpdateInput; answer: s.RoomUpdateAnswer };
  /** Destroy a room. */
  room_destroy: { input: s.RoomDestroyInput; answer: s.RoomDestroyAnswer };
  /** Create a sandbox from a template. */
  sandbox_create: { input: s.SandboxCreateInput; answer: s.SandboxCreateAnswer };
  /** List a room's sandboxes. */
  sandbox_list: { input: s.SandboxListInput; answer: s.SandboxListAnswer };
  /** List sandboxes of all rooms. */
  org_sandbox_list: { input: s.OrgSandboxListInput; answer: s.OrgSandboxListAnswer };
  /** Get a sandbox. */
  sandbox_get: { input: s.SandboxGetInput; answer: s.SandboxGetAnswer };
  /** Change a sandbox's labels and timeouts. */
  sandbox_update: { input: s.SandboxUpdateInput; answer: s.SandboxUpdateAnswer };
  /** Destroy a sandbox. */
  sandbox_destroy: { input: s.SandboxDestroyInput; answer: s.SandboxDestroyAnswer };
  /** Pause a sandbox. */
  sandbox_standby: { input: s.SandboxStandbyInput; answer: s.SandboxStandbyAnswer };
  /** Hibernate a sandbox. */
  sandbox_hibernate: { input: s.SandboxHibernateInput; answer: s.SandboxHibernateAnswer };
  /** Take a snapshot of a sandbox. */
  sandbox_snapshot: { input: s.SandboxSnapshotInput; answer: s.SandboxSnapshotAnswer };
  /** Fork a running sandbox. */
  sandbox_fork: { input: s.SandboxForkInput; answer: s.SandboxForkAnswer };
  /** Roll back a sandbox to a snapshot. */
  sandbox_rollback: { input: s.SandboxRollbackInput; answer: s.SandboxRollbackAnswer };
  /** List a room's snapshots. */
  snapshot_list: { input: s.SnapshotListInput; answer: s.SnapshotListAnswer };
  /** Get a snapshot. */
  snapshot_get: { input: s.SnapshotGetInput; answer: s.SnapshotGetAnswer };
  /** Delete a snapshot. */
  snapshot_delete: { input: s.SnapshotDeleteInput; answer: s.SnapshotDeleteAnswer };
  /** Take a checkpoint of a room. */
  room_checkpoint: { input: s.RoomCheckpointInput; answer: s.RoomCheckpointAnswer };
  /** List a room's checkpoints. */
  checkpoint_list: { input: s.CheckpointListInput; answer: s.CheckpointListAnswer };
  /** Get a checkpoint. */
  checkpoint_get: { input: s.CheckpointGetInput; answer: s.CheckpointGetAnswer };
  /** Delete a checkpoint. */
  checkpoint_delete: { input: s.CheckpointDeleteInput; answer: s.CheckpointDeleteAnswer };
  /** Fork a room. */
  room_fork: { input: s.RoomForkInput; answer: s.RoomForkAnswer };
  /** Restore a room from a checkpoint. */
  room_restore: { input: s.RoomRestoreInput; answer: s.RoomRestoreAnswer };
  /** Move a room to another host. */
  room_move: { input: s.RoomMoveInput; answer: s.RoomMoveAnswer };
  /** Back up a room to a file. */
  room_backup: { input: s.RoomBackupInput; answer: Uint8Array };
  /** Create a room from a backup. */
  room_from_backup: { input: s.RoomFromBackupInput; answer: s.RoomFromBackupAnswer };
  /** Resume a sandbox in standby or hibernation. */
  sandbox_resume: { input: s.SandboxResumeInput; answer: s.SandboxResumeAnswer };
  /** Read a sandbox's console or agent log. */
  sandbox_logs: { input: s.SandboxLogsInput; answer: s.SandboxLogsAnswer };
  /** Measure a sandbox. */
  sandbox_metrics: { input: s.SandboxMetricsInput; answer: s.SandboxMetricsAnswer };
  /** Get a sandbox's egress list and its traffic. */
  egress_get: { input: s.EgressGetInput; answer: s.EgressGetAnswer };
  /** Change the destinations that a sandbox may connect to. */
  egress_set: { input: s.EgressSetInput; answer: s.EgressSetAnswer };
  /** Check whether a sandbox may connect to a host, and why. */
  egress_explain: { input: s.EgressExplainInput; answer: s.EgressExplainAnswer };
  /** Show a sandbox's connections, allowed and refused. */
  sandbox_network: { input: s.SandboxNetworkInput; answer: s.SandboxNetworkAnswer };
  /** Run a command and wait for it. */
  sandbox_exec: { input: s.SandboxExecInput; answer: s.SandboxExecAnswer };
  /** Stream a file into a sandbox. */
  sandbox_file_put: { input: s.SandboxFilePutInput; answer: s.SandboxFilePutAnswer };
  /** Stream a file out of a sandbox. */
  sandbox_file_get: { input: s.SandboxFileGetInput; answer: Uint8Array };
  /** List a directory of a sandbox. */
  sandbox_file_list: { input: s.SandboxFileListInput; answer: s.SandboxFileListAnswer };
  /** Delete an entry of a sandbox's file system. */
  sandbox_file_delete: { input: s.SandboxFileDeleteInput; answer: s.SandboxFileDeleteAnswer };
  /** Describe one entry of a sandbox's file system. */
  sandbox_file_stat: { input: s.SandboxFileStatInput; answer: s.SandboxFileStatAnswer };
  /** Make a directory in a sandbox. */
  sandbox_file_mkdir: { input: s.SandboxFileMkdirInput; answer: s.SandboxFileMkdirAnswer };
  /** Move an entry of a sandbox's file system. */
  sandbox_file_move: { input: s.SandboxFileMoveInput; answer: s.SandboxFileMoveAnswer };
  /** Watch a directory or a file of a sandbox. */
  sandbox_file_watch: { input: s.SandboxFileWatchInput; answer: s.SandboxFileWatchAnswer };
  /** Open a terminal. */
  terminal_create: { input: s.TerminalCreateInput; answer: s.TerminalCreateAnswer };
  /** List a sandbox's terminals. */
  terminal_list: { input: s.TerminalListInput; answer: s.TerminalListAnswer };
  /** Get a terminal. */
  terminal_get: { input: s.TerminalGetInput; answer: s.TerminalGetAnswer };
  /** End a terminal. */
  terminal_close: { input: s.TerminalCloseInput; answer: s.TerminalCloseAnswer };
  /** Watch a terminal. */
  terminal_watch: { input: s.TerminalWatchInput; answer: s.TerminalWatchAnswer };
  /** Make another token for a terminal. */
  terminal_token: { input: s.TerminalTokenInput; answer: s.TerminalTokenAnswer };
  /** Attach to a terminal by WebSocket. */
  terminal_attach: { input: s.TerminalAttachInput; answer: never };
  /** Take a screenshot of a sandbox. */
  screen_get: { input: s.ScreenGetInput; answer: Uint8Array };
  /** Use a sandbox's screen, keyboard and mouse. */
  computer: { input: s.ComputerInput; answer: s.ComputerAnswer };
  /** Create a ticket for a sandbox's screen. */
  screen_ticket: { input: s.ScreenTicketInput; answer: s.ScreenTicketAnswer };
  /** View a sandbox's screen live, by WebSocket. */
  screen_view: { input: s.ScreenViewInput; answer: never };
  /** Start recording a sandbox's screen. */
  recording_start: { input: s.RecordingStartInput; answer: s.RecordingStartAnswer };
  /** List the recordings of a sandbox's screen. */
  recording_list: { input: s.RecordingListInput; answer: s.RecordingListAnswer };
  /** Get one recording's record. */
  recording_get: { input: s.RecordingGetInput; answer: s.RecordingGetAnswer };
  /** Delete a recording. */
  recording_delete: { input: s.RecordingDeleteInput; answer: s.RecordingDeleteAnswer };
  /** Stop recording. */
  recording_stop: { input: s.RecordingStopInput; answer: s.RecordingStopAnswer };
  /** Read a recording in its stored format. */
  recording_data: { input: s.RecordingDataInput; answer: Uint8Array };
  /** Export a recording as a video. */
  recording_film: { input: s.RecordingFilmInput; answer: Uint8Array };
  /** Make a short-lived password for SSH. */
  ssh_access_create: { input: s.SshAccessCreateInput; answer: s.SshAccessCreateAnswer };
  /** List the short-lived passwords of a sandbox. */
  ssh_access_list: { input: s.SshAccessListInput; answer: s.SshAccessListAnswer };
  /** Revoke a short-lived password. */
  ssh_access_delete: { input: s.SshAccessDeleteInput; answer: s.SshAccessDeleteAnswer };
  /** Register a public key for SSH. */
  ssh_key_add: { input: s.SshKeyAddInput; answer: s.SshKeyAddAnswer };
  /** List the organization's public keys for SSH. */
  ssh_key_list: { input: s.SshKeyListInput; answer: s.SshKeyListAnswer };
  /** Remove a public key. */
  ssh_key_remove: { input: s.SshKeyRemoveInput; answer: s.SshKeyRemoveAnswer };
  /** Expose a port of a sandbox. */
  sandbox_expose_port: { input: s.SandboxExposePortInput; answer: s.SandboxExposePortAnswer };
  /** List a sandbox's exposed ports. */
  port_list: { input: s.PortListInput; answer: s.PortListAnswer };
  /** Unexpose a port of a sandbox. */
  sandbox_unexpose_port: { input: s.SandboxUnexposePortInput; answer: s.SandboxUnexposePortAnswer };
  /** Get the URL of a sandbox's browser, for Playwright and Puppeteer. */
  browser_get: { input: s.BrowserGetInput; answer: s.BrowserGetAnswer };
  /** Start a command and leave it running. */
  execution_start: { input: s.ExecutionStartInput; answer: s.ExecutionStartAnswer };
  /** List a sandbox's executions. */
  execution_list: { input: s.ExecutionListInput; answer: s.ExecutionListAnswer };
  /** Get an execution. */
  execution_get: { input: s.ExecutionGetInput; answer: s.ExecutionGetAnswer };
  /** End an execution. */
  execution_end: { input: s.ExecutionEndInput; answer: s.ExecutionEndAnswer };
  /** Stream an execution's output. */
  execution_stream: { input: s.ExecutionStreamInput; answer: s.ExecutionStreamAnswer };
  /** Write to an execution's standard input. */
  execution_stdin: { input: s.ExecutionStdinInput; answer: s.ExecutionStdinAnswer };
  /** Send an execution a signal. */
  execution_signal: { input: s.ExecutionSignalInput; answer: s.ExecutionSignalAnswer };
  /** Write a file on the drive. */
  fs_write: { input: s.FsWriteInput; answer: s.FsWriteAnswer };
  /** List the drive. */
  fs_list: { input: s.FsListInput; answer: s.FsListAnswer };
  /** Read a file of the drive. */
  fs_read: { input: s.FsReadInput; answer: s.FsReadAnswer };
  /** Describe one entry of the drive. */
  fs_stat: { input: s.FsStatInput; answer: s.FsStatAnswer };
  /** Make a directory on the drive. */
  fs_mkdir: { input: s.FsMkdirInput; answer: s.FsMkdirAnswer };
  /** Move an entry of the drive. */
  fs_move: { input: s.FsMoveInput; answer: s.FsMoveAnswer };
  /** Delete an entry of the drive. */
  fs_delete: { input: s.FsDeleteInput; answer: s.FsDeleteAnswer };
  /** Stream a file onto the drive. */
  file_put: { input: s.FilePutInput; answer: s.FilePutAnswer };
  /** Stream a file from the drive. */
  file_get: { input: s.FileGetInput; answer: Uint8Array };
  /** Send a message. */
  agent_send: { input: s.AgentSendInput; answer: s.AgentSendAnswer };
  /** Read an inbox, or the room's messages. */
  agent_wait: { input: s.AgentWaitInput; answer: s.AgentWaitAnswer };
  /** Send many messages. */
  message_send_many: { input: s.MessageSendManyInput; answer: s.MessageSendManyAnswer };
  /** Get a message and its delivery state. */
  message_get: { input: s.MessageGetInput; answer: s.MessageGetAnswer };
  /** Acknowledge a message. */
  message_ack: { input: s.MessageAckInput; answer: s.MessageAckAnswer };
  /** Reply to a message. */
  message_reply: { input: s.MessageReplyInput; answer: s.MessageReplyAnswer };
  /** Set the topics that an agent subscribes to. */
  agent_subscribe: { input: s.AgentSubscribeInput; answer: s.AgentSubscribeAnswer };
  /** List the agents of a room. */
  agent_list: { input: s.AgentListInput; answer: s.AgentListAnswer };
  /** Arrive at a barrier, and wait until all have. */
  barrier_arrive: { input: s.BarrierArriveInput; answer: s.BarrierArriveAnswer };
  /** List a room's barriers. */
  barrier_list: { input: s.BarrierListInput; answer: s.BarrierListAnswer };
  /** Get a barrier's newest generation. */
  barrier_get: { input: s.BarrierGetInput; answer: s.BarrierGetAnswer };
  /** Cancel a barrier. */
  barrier_cancel: { input: s.BarrierCancelInput; answer: s.BarrierCancelAnswer };
  /** Show rooms at a glance. */
  room_overview: { input: s.RoomOverviewInput; answer: s.RoomOverviewAnswer };
  /** Show the waits and deadlocks of a room. */
  room_waits: { input: s.RoomWaitsInput; answer: s.RoomWaitsAnswer };
  /** Show a room's history as spans and marks. */
  room_timeline: { input: s.RoomTimelineInput; answer: s.RoomTimelineAnswer };
  /** Stream the current state of a room. */
  room_now: { input: s.RoomNowInput; answer: s.RoomNowAnswer };
  /** Carry several streams over one WebSocket. */
  live_socket: { input: s.LiveSocketInput; answer: never };
  /** List templates. */
  template_list: { input: s.TemplateListInput; answer: s.TemplateListAnswer };
  /** Build a template of the organization. */
  template_create: { input: s.TemplateCreateInput; answer: s.TemplateCreateAnswer };
  /** Get a template. */
  template_get: { input: s.TemplateGetInput; answer: s.TemplateGetAnswer };
  /** Remove a template of the organization. */
  template_remove: { input: s.TemplateRemoveInput; answer: s.TemplateRemoveAnswer };
  /** Get a build of a template. */
  template_build_get: { input: s.TemplateBuildGetInput; answer: s.TemplateBuildGetAnswer };
  /** End a build of a template. */
  template_build_end: { input: s.TemplateBuildEndInput; answer: s.TemplateBuildEndAnswer };
  /** Follow a build of a template. */
  template_build_stream: { input: s.TemplateBuildStreamInput; answer: s.TemplateBuildStreamAnswer };
  /** List a room's audit. */
  audit_list: { input: s.AuditListInput; answer: s.AuditListAnswer };
  /** List the organization's audit. */
  org_audit_list: { input: s.OrgAuditListInput; answer: s.OrgAuditListAnswer };
  /** Sum up a room's audit. */
  audit_summary: { input: s.AuditSummaryInput; answer: s.AuditSummaryAnswer };
  /** Sum up the organization's audit. */
  org_audit_summary: { input: s.OrgAuditSummaryInput; answer: s.OrgAuditSummaryAnswer };
  /** Verify the chain that a room's audit is part of. */
  audit_verify: { input: s.AuditVerifyInput; answer: s.AuditVerifyAnswer };
  /** Verify the organization's audit chain. */
  org_audit_verify: { input: s.OrgAuditVerifyInput; answer: s.OrgAuditVerifyAnswer };
  /** Stream a room's events. */
  room_events: { input: s.RoomEventsInput; answer: s.RoomEventsAnswer };
  /** Stream the organization's events. */
  org_events: { input: s.OrgEventsInput; answer: s.OrgEventsAnswer };
}

export interface OperationRow {
  method: string;
  path: string;
  /** Names of query parameters. */
  query?: readonly string[];
  /** Form of the body, which takes all other fields: an object, or the file itself. */
  body?: "json" | "bytes";
  answer: "json" | "events" | "bytes" | "text" | "socket";
}

export const OPERATIONS: Record<keyof Operations, OperationRow> = {
  health: {"method":"GET","path":"/health","answer":"json"},
  metrics: {"method":"GET","path":"/metrics","answer":"text"},
  config_get: {"method":"GET","path":"/v1/config","answer":"json"},
  me_get: {"method":"GET","path":"/v1/me","answer":"json"},
  locate: {"method":"GET","path":"/v1/locate/{id}","answer":"json"},
  host_list: {"method":"GET","path":"/v1/hosts","answer":"json"},
  host_evacuate: {"method":"POST","path":"/v1/hosts/{host}/evacuate","body":"json","answer":"json"},
  openapi_get: {"method":"GET","path":"/v1/openapi.json","answer":"json"},
  org_create: {"method":"POST","path":"/v1/orgs","body":"json","answer":"json"},
  org_delete: {"method":"DELETE","path":"/v1/orgs/{org_id}","query":["org_name"],"answer":"json"},
  key_create: {"method":"POST","path":"/v1/orgs/{org_id}/keys","body":"json","answer":"json"},
  key_list: {"method":"GET","path":"/v1/orgs/{org_id}/keys","query":["limit","cursor"],"answer":"json"},
  key_rotate: {"method":"POST","path":"/v1/orgs/{org_id}/keys/{key_id}/rotate","body":"json","answer":"json"},
  key_revoke: {"method":"DELETE","path":"/v1/orgs/{org_id}/keys/{key_id}","answer":"json"},
  webhook_create: {"method":"POST","path":"/v1/orgs/{org_id}/webhooks","body":"json","answer":"json"},
  webhook_list: {"method":"GET","path":"/v1/orgs/{org_id}/webhooks","query":["limit","cursor"],"answer":"json"},
  webhook_get: {"method":"GET","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}","answer":"json"},
  webhook_update: {"method":"PATCH","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}","body":"json","answer":"json"},
  webhook_delete: {"method":"DELETE","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}","answer":"json"},
  webhook_rotate: {"method":"POST","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}/rotate","body":"json","answer":"json"},
  webhook_deliveries: {"method":"GET","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}/deliveries","query":["limit","cursor"],"answer":"json"},
  webhook_redeliver: {"method":"POST","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver","body":"json","answer":"json"},
  webhook_test: {"method":"POST","path":"/v1/orgs/{org_id}/webhooks/{webhook_id}/test","body":"json","answer":"json"},
  billing_get: {"method":"GET","path":"/v1/orgs/{org_id}/billing","answer":"json"},
  billing_checkout: {"method":"POST","path":"/v1/orgs/{org_id}/billing/checkouts","answer":"json"},
  billing_portal: {"method":"POST","path":"/v1/orgs/{org_id}/billing/portal","answer":"json"},
  billing_success: {"method":"GET","path":"/v1/orgs/{org_id}/billing/checkouts/{checkout_id}","answer":"json"},
  billing_key: {"method":"POST","path":"/v1/orgs/{org_id}/billing/checkouts/{checkout_id}/key","answer":"json"},
  account_get: {"method":"GET","path":"/v1/account","answer":"json"},
  account_update: {"method":"PATCH","path":"/v1/account","body":"json","answer":"json"},
  account_delete: {"method":"DELETE","path":"/v1/account","query":["email"],"answer":"json"},
  account_export: {"method":"GET","path":"/v1/account/export","answer":"json"},
  session_list: {"method":"GET","path":"/v1/account/sessions","answer":"json"},
  session_end: {"method":"DELETE","path":"/v1/account/sessions/{session_id}","answer":"json"},
  grant_list: {"method":"GET","path":"/v1/account/grants","answer":"json"},
  grant_create: {"method":"POST","path":"/v1/account/grants","body":"json","answer":"json"},
  device_decide: {"method":"POST","path":"/v1/account/grants/device","body":"json","answer":"json"},
  grant_end: {"method":"DELETE","path":"/v1/account/grants/{grant_id}","answer":"json"},
  application_list: {"method":"GET","path":"/v1/orgs/{org_id}/applications","query":["limit","cursor"],"answer":"json"},
  application_end: {"method":"DELETE","path":"/v1/orgs/{org_id}/applications/{grant_id}","answer":"json"},
  identity_list: {"method":"GET","path":"/v1/account/identities","answer":"json"},
  identity_begin: {"method":"POST","path":"/v1/account/identities/begin","body":"json","answer":"json"},
  identity_remove: {"method":"DELETE","path":"/v1/account/identities/{identity_id}","answer":"json"},
  passkey_list: {"method":"GET","path":"/v1/account/passkeys","answer":"json"},
  passkey_add: {"method":"POST","path":"/v1/account/passkeys","body":"json","answer":"json"},
  passkey_options: {"method":"POST","path":"/v1/account/passkeys/options","body":"json","answer":"json"},
  passkey_remove: {"method":"DELETE","path":"/v1/account/passkeys/{passkey_id}","answer":"json"},
  member_list: {"method":"GET","path":"/v1/orgs/{org_id}/members","answer":"json"},
  member_update: {"method":"PATCH","path":"/v1/orgs/{org_id}/members/{user_id}","body":"json","answer":"json"},
  member_remove: {"method":"DELETE","path":"/v1/orgs/{org_id}/members/{user_id}","answer":"json"},
  invitation_create: {"method":"POST","path":"/v1/orgs/{org_id}/invitations","body":"json","answer":"json"},
  invitation_list: {"method":"GET","path":"/v1/orgs/{org_id}/invitations","answer":"json"},
  invitation_delete: {"method":"DELETE","path":"/v1/orgs/{org_id}/invitations/{invitation_id}","answer":"json"},
  usage: {"method":"GET","path":"/v1/orgs/{org_id}/usage","query":["group_by","month"],"answer":"json"},
  credit_list: {"method":"GET","path":"/v1/orgs/{org_id}/credits","query":["limit","cursor"],"answer":"json"},
  top_get: {"method":"GET","path":"/v1/top","query":["room_id"],"answer":"json"},
  room_create: {"method":"POST","path":"/v1/rooms","body":"json","answer":"json"},
  room_list: {"method":"GET","path":"/v1/rooms","query":["state","label","host","order","limit","cursor"],"answer":"json"},
  room_get: {"method":"GET","path":"/v1/rooms/{room_id}","answer":"json"},
  room_update: {"method":"PATCH","path":"/v1/rooms/{room_id}","body":"json","answer":"json"},
  room_destroy: {"method":"DELETE","path":"/v1/rooms/{room_id}","query":["drive"],"answer":"json"},
  sandbox_create: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/from-template","query":["wait","wait_timeout_ms"],"body":"json","answer":"json"},
  sandbox_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes","query":["state","label","limit","cursor"],"answer":"json"},
  org_sandbox_list: {"method":"GET","path":"/v1/sandboxes","query":["room_id","state","label","limit","cursor"],"answer":"json"},
  sandbox_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}","query":["wait_ms"],"answer":"json"},
  sandbox_update: {"method":"PATCH","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}","body":"json","answer":"json"},
  sandbox_destroy: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}","answer":"json"},
  sandbox_standby: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/standby","answer":"json"},
  sandbox_hibernate: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/hibernate","answer":"json"},
  sandbox_snapshot: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/snapshots","body":"json","answer":"json"},
  sandbox_fork: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/fork","body":"json","answer":"json"},
  sandbox_rollback: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/rollback","body":"json","answer":"json"},
  snapshot_list: {"method":"GET","path":"/v1/rooms/{room_id}/snapshots","query":["agent_id","limit","cursor"],"answer":"json"},
  snapshot_get: {"method":"GET","path":"/v1/rooms/{room_id}/snapshots/{snapshot_id}","answer":"json"},
  snapshot_delete: {"method":"DELETE","path":"/v1/rooms/{room_id}/snapshots/{snapshot_id}","answer":"json"},
  room_checkpoint: {"method":"POST","path":"/v1/rooms/{room_id}/checkpoints","body":"json","answer":"json"},
  checkpoint_list: {"method":"GET","path":"/v1/rooms/{room_id}/checkpoints","query":["limit","cursor"],"answer":"json"},
  checkpoint_get: {"method":"GET","path":"/v1/rooms/{room_id}/checkpoints/{checkpoint_id}","answer":"json"},
  checkpoint_delete: {"method":"DELETE","path":"/v1/rooms/{room_id}/checkpoints/{checkpoint_id}","answer":"json"},
  room_fork: {"method":"POST","path":"/v1/rooms/{source_room_id}/fork","body":"json","answer":"json"},
  room_restore: {"method":"POST","path":"/v1/rooms/{room_id}/checkpoints/{checkpoint_id}/restore","answer":"json"},
  room_move: {"method":"POST","path":"/v1/rooms/{room_id}/move","body":"json","answer":"json"},
  room_backup: {"method":"GET","path":"/v1/rooms/{room_id}/backup","answer":"bytes"},
  room_from_backup: {"method":"PUT","path":"/v1/rooms/{room_id}/backup","query":["host"],"body":"bytes","answer":"json"},
  sandbox_resume: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/resume","answer":"json"},
  sandbox_logs: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/logs","query":["source","after","limit"],"answer":"json"},
  sandbox_metrics: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/metrics","answer":"json"},
  egress_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/egress","answer":"json"},
  egress_set: {"method":"PUT","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/egress","body":"json","answer":"json"},
  egress_explain: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/egress/explain","query":["host","port"],"answer":"json"},
  sandbox_network: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/network","answer":"json"},
  sandbox_exec: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/exec","body":"json","answer":"json"},
  sandbox_file_put: {"method":"PUT","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files/raw/{path}","query":["mode","owner","overwrite"],"body":"bytes","answer":"json"},
  sandbox_file_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files/raw/{path}","answer":"bytes"},
  sandbox_file_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files","query":["path","recursive","limit","cursor"],"answer":"json"},
  sandbox_file_delete: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files","query":["path","recursive"],"answer":"json"},
  sandbox_file_stat: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files/stat","query":["path","follow"],"answer":"json"},
  sandbox_file_mkdir: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files/mkdir","body":"json","answer":"json"},
  sandbox_file_move: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files/move","body":"json","answer":"json"},
  sandbox_file_watch: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/files/watch","query":["path","recursive","after"],"answer":"events"},
  terminal_create: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals","body":"json","answer":"json"},
  terminal_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals","answer":"json"},
  terminal_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}","answer":"json"},
  terminal_close: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}","answer":"json"},
  terminal_watch: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}/watch","query":["after"],"answer":"events"},
  terminal_token: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}/token","body":"json","answer":"json"},
  terminal_attach: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}/ws","query":["since","takeover"],"answer":"socket"},
  screen_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen","query":["width"],"answer":"bytes"},
  computer: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/computer","body":"json","answer":"json"},
  screen_ticket: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/ticket","body":"json","answer":"json"},
  screen_view: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/ws","query":["ticket"],"answer":"socket"},
  recording_start: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings","body":"json","answer":"json"},
  recording_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings","answer":"json"},
  recording_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings/{recording_id}","answer":"json"},
  recording_delete: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings/{recording_id}","answer":"json"},
  recording_stop: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings/{recording_id}/stop","answer":"json"},
  recording_data: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings/{recording_id}/data","answer":"bytes"},
  recording_film: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/recordings/{recording_id}/film","answer":"bytes"},
  ssh_access_create: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/ssh-access","body":"json","answer":"json"},
  ssh_access_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/ssh-access","answer":"json"},
  ssh_access_delete: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/ssh-access/{access_id}","answer":"json"},
  ssh_key_add: {"method":"POST","path":"/v1/orgs/{org_id}/ssh-keys","body":"json","answer":"json"},
  ssh_key_list: {"method":"GET","path":"/v1/orgs/{org_id}/ssh-keys","answer":"json"},
  ssh_key_remove: {"method":"DELETE","path":"/v1/orgs/{org_id}/ssh-keys/{ssh_key_id}","answer":"json"},
  sandbox_expose_port: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/ports","body":"json","answer":"json"},
  port_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/ports","answer":"json"},
  sandbox_unexpose_port: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/ports/{port}","answer":"json"},
  browser_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/browser","answer":"json"},
  execution_start: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions","body":"json","answer":"json"},
  execution_list: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions","query":["limit","cursor"],"answer":"json"},
  execution_get: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}","answer":"json"},
  execution_end: {"method":"DELETE","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}","answer":"json"},
  execution_stream: {"method":"GET","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}/stream","query":["after","follow"],"answer":"events"},
  execution_stdin: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}/stdin","body":"json","answer":"json"},
  execution_signal: {"method":"POST","path":"/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}/signal","body":"json","answer":"json"},
  fs_write: {"method":"POST","path":"/v1/rooms/{room_id}/drive/write","body":"json","answer":"json"},
  fs_list: {"method":"GET","path":"/v1/rooms/{room_id}/drive/list","query":["path","recursive","limit","cursor"],"answer":"json"},
  fs_read: {"method":"GET","path":"/v1/rooms/{room_id}/drive/read","query":["path","offset","length","format"],"answer":"json"},
  fs_stat: {"method":"GET","path":"/v1/rooms/{room_id}/drive/stat","query":["path"],"answer":"json"},
  fs_mkdir: {"method":"POST","path":"/v1/rooms/{room_id}/drive/mkdir","body":"json","answer":"json"},
  fs_move: {"method":"POST","path":"/v1/rooms/{room_id}/drive/move","body":"json","answer":"json"},
  fs_delete: {"method":"DELETE","path":"/v1/rooms/{room_id}/drive/delete","query":["path","recursive"],"answer":"json"},
  file_put: {"method":"PUT","path":"/v1/rooms/{room_id}/drive/files/{path}","query":["mode","owner","overwrite"],"body":"bytes","answer":"json"},
  file_get: {"method":"GET","path":"/v1/rooms/{room_id}/drive/files/{path}","answer":"bytes"},
  agent_send: {"method":"POST","path":"/v1/rooms/{room_id}/messages","body":"json","answer":"json"},
  agent_wait: {"method":"GET","path":"/v1/rooms/{room_id}/messages","query":["agent_id","topic","kind","source","after","limit","wait_ms","cursor"],"answer":"json"},
  message_send_many: {"method":"POST","path":"/v1/rooms/{room_id}/messages/batch","body":"json","answer":"json"},
  message_get: {"method":"GET","path":"/v1/rooms/{room_id}/messages/{message_id}","answer":"json"},
  message_ack: {"method":"POST","path":"/v1/rooms/{room_id}/messages/{message_id}/ack","body":"json","answer":"json"},
  message_reply: {"method":"POST","path":"/v1/rooms/{room_id}/messages/{message_id}/reply","body":"json","answer":"json"},
  agent_subscribe: {"method":"PUT","path":"/v1/rooms/{room_id}/agents/{agent_id}/subscriptions","body":"json","answer":"json"},
  agent_list: {"method":"GET","path":"/v1/rooms/{room_id}/agents","query":["limit","cursor"],"answer":"json"},
  barrier_arrive: {"method":"POST","path":"/v1/rooms/{room_id}/barriers","body":"json","answer":"json"},
  barrier_list: {"method":"GET","path":"/v1/rooms/{room_id}/barriers","query":["limit","cursor"],"answer":"json"},
  barrier_get: {"method":"GET","path":"/v1/rooms/{room_id}/barriers/{barrier_id}","answer":"json"},
  barrier_cancel: {"method":"DELETE","path":"/v1/rooms/{room_id}/barriers/{barrier_id}","answer":"json"},
  room_overview: {"method":"GET","path":"/v1/overview/rooms","query":["state","label","host","order","limit","cursor"],"answer":"json"},
  room_waits: {"method":"GET","path":"/v1/rooms/{room_id}/waits","answer":"json"},
  room_timeline: {"method":"GET","path":"/v1/rooms/{room_id}/timeline","query":["since","until","agent_id","types","limit","cursor","order"],"answer":"json"},
  room_now: {"method":"GET","path":"/v1/rooms/{room_id}/now","query":["follow"],"answer":"events"},
  live_socket: {"method":"GET","path":"/v1/live/ws","answer":"socket"},
  template_list: {"method":"GET","path":"/v1/templates","answer":"json"},
  template_create: {"method":"POST","path":"/v1/templates","body":"json","answer":"json"},
  template_get: {"method":"GET","path":"/v1/templates/{template_id}","answer":"json"},
  template_remove: {"method":"DELETE","path":"/v1/templates/{template_id}","answer":"json"},
  template_build_get: {"method":"GET","path":"/v1/templates/{template_id}/builds/{build_id}","answer":"json"},
  template_build_end: {"method":"DELETE","path":"/v1/templates/{template_id}/builds/{build_id}","answer":"json"},
  template_build_stream: {"method":"GET","path":"/v1/templates/{template_id}/builds/{build_id}/stream","query":["after","follow"],"answer":"events"},
  audit_list: {"method":"GET","path":"/v1/rooms/{room_id}/audit","query":["since","until","event","agent_id","outcome","source","actor_id","request_id","trace_id","audit_id","reads","limit","cursor","order"],"answer":"json"},
  org_audit_list: {"method":"GET","path":"/v1/orgs/{org_id}/audit","query":["since","until","event","agent_id","outcome","source","actor_id","request_id","trace_id","audit_id","reads","limit","cursor","order","room_id"],"answer":"json"},
  audit_summary: {"method":"GET","path":"/v1/rooms/{room_id}/audit/summary","query":["since","until","event","agent_id","outcome","source","actor_id","request_id","trace_id","audit_id","reads"],"answer":"json"},
  org_audit_summary: {"method":"GET","path":"/v1/orgs/{org_id}/audit/summary","query":["since","until","event","agent_id","outcome","source","actor_id","request_id","trace_id","audit_id","reads","room_id"],"answer":"json"},
  audit_verify: {"method":"GET","path":"/v1/rooms/{room_id}/audit/verify","answer":"json"},
  org_audit_verify: {"method":"GET","path":"/v1/orgs/{org_id}/audit/verify","answer":"json"},
  room_events: {"method":"GET","path":"/v1/rooms/{room_id}/events","query":["after","follow"],"answer":"events"},
  org_events: {"method":"GET","path":"/v1/orgs/{org_id}/events","query":["after","follow"],"answer":"events"},
};
