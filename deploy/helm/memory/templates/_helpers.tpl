{{- define "memory.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* What chooses the pods of a part. Call with (dict "root" $ "part" "api"). */ -}}
{{- define "memory.selector" -}}
app.kubernetes.io/name: memory
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "memory.labels" -}}
{{ include "memory.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "memory.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .root.Values.secretName }}, key: {{ .key }}}
{{- end -}}

{{- /* Environment of a part. "redis" names its user at Redis; "owner" gives it the owner of the database, "store" false no database. */ -}}
{{- define "memory.env" -}}
- {name: MEMORY_LOG__FORM, value: json}
- {name: MEMORY_DATA_FOLDER, value: /tmp/memory}
- {name: MEMORY_LIFE_FOLDER, value: /tmp/life}
{{- range $name, $value := .root.Values.config }}
- {name: {{ $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- if ne .store false }}
{{ include "memory.secretEnv" (dict "root" .root "name" "MEMORY_DATABASE__URL" "key" "database-url") }}
{{- end }}
{{- if .owner }}
{{ include "memory.secretEnv" (dict "root" .root "name" "MEMORY_DATABASE__OWNER_URL" "key" "owner-url") }}
{{- end }}
{{ include "memory.secretEnv" (dict "root" .root "name" "MEMORY_REDIS__URL" "key" (printf "redis-url-%s" .redis)) }}
{{- end -}}

{{- /* Fields of a pod that are the same for all parts. */ -}}
{{- define "memory.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
{{- end -}}

{{- /* Fields of a container that are the same for all parts. */ -}}
{{- define "memory.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- /* A look at the part itself: a liveness probe must not fail because another part is away. */ -}}
{{- define "memory.probes" -}}
startupProbe:
  exec: {command: [memory, health, {{ .look }}]}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 30
livenessProbe:
  exec: {command: [memory, health, {{ .look }}]}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 3
{{- end -}}

{{- /* A deployment of a part that nobody connects to. Call with root, part, args, look, replicas, resources, redis, owner, model. */ -}}
{{- define "memory.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "memory.name" .root }}-{{ .part }}
  labels: {{- include "memory.labels" . | nindent 4 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "memory.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "memory.labels" . | nindent 8 }}
      {{- with .root.Values.podAnnotations }}
      annotations: {{ toJson . }}
      {{- end }}
    spec:
      {{- include "memory.pod" .root | nindent 6 }}
      # A question to a model ends within 40 s.
      terminationGracePeriodSeconds: 60
      containers:
        - name: {{ .part }}
          {{- include "memory.container" .root | nindent 10 }}
          args: {{ toJson .args }}
          env:
            {{- include "memory.env" . | nindent 12 }}
          {{- if and .model .root.Values.modelSecretName }}
          envFrom:
            - secretRef: {name: {{ .root.Values.modelSecretName }}}
          {{- end }}
          {{- include "memory.probes" . | nindent 10 }}
          resources: {{ toJson .resources }}
{{- end -}}
